"""The programs of ``polybench/``, ``gatlas/`` and ``pragmas/``."""
