"""Tests of ``looptune.frontend``."""
