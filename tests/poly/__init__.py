"""Tests of ``looptune.poly``."""
