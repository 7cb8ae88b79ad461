"""Tests of ``looptune.core``."""
