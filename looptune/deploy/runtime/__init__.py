"""The runtime that ``looptune build`` copies into every module.

These files need NumPy, Numba and, for a GPU, numba-cuda; of looptune they import only each other and the files of
``runtime`` that are copied, too.
"""
