"""Tests of ``looptune.lower``."""
