"""Tests of ``looptune.tune``."""
