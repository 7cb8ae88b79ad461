"""The SQLite database of everything that was measured."""
