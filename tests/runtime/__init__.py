"""Tests of ``looptune.runtime``."""
