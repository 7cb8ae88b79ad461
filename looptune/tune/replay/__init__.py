"""Searches replayed on recorded measurements."""
