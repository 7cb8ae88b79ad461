"""The output of ``looptune check``."""
