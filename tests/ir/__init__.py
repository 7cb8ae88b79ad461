"""Tests of ``looptune.ir``."""
