"""Tests of ``looptune.report``."""
