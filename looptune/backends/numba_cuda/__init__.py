"""Kernels in Python for Numba's CUDA compiler."""
