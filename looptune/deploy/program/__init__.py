"""Whole programs: C in which calls of codelets run on a GPU, with the runtime in C that such programs contain."""
