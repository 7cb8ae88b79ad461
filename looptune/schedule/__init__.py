"""Directives: bound to the loops of a codelet, judged, applied. ``directives`` has a file for each."""
