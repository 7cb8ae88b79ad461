"""Functions in Python for Numba's CPU compiler."""
