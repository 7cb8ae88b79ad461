"""Deployment: what the store knows of a source becomes a module or a C file that needs looptune no more."""
