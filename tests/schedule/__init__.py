"""Tests of ``looptune.schedule``."""
