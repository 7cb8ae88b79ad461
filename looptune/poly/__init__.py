"""Dependences, legality and translation validation. The only package that knows isl."""
