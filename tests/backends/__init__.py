"""Tests of ``looptune.backends``."""
