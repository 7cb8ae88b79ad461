"""Tests of ``looptune.cli``."""
