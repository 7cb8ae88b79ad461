"""What ``looptune build`` writes into every module, as it stands here.

These files need NumPy, Numba and, for a GPU, numba-cuda, and nothing of looptune but each other and
``runtime.tolerance``.
"""
