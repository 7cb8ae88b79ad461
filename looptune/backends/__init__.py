"""From a plan to source text, to a binary, to a program that can be called."""
