"""Searches again, on what was recorded."""
