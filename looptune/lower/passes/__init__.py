"""Rewritings of a codelet, of a kernel or of its statements on the way to a target's source text."""
