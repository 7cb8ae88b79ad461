"""Tests of ``looptune.deploy``."""
