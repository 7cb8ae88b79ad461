"""Source text of kernels: what the targets have in common."""
