"""Random finished programs: whole C translation units under random directives, run on every target that runs here.

    texts ──▶ a C file ──▶ gcc, sanitized ─▶ what it leaves in its arrays ◀──── compared, canaries included
      │          └─ looptune, directives ─▶ C, Numba, CUDA C, OpenCL C, a tree ─┘
      └─ shrinking: the same tree with parts left out

The original text is compiled as it stands, so that the reference shares no code with what is judged.
"""
