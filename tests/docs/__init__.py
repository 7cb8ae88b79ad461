"""The documents, the examples and the published reports."""
