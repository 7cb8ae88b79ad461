"""From a codelet to a plan of kernels and host loops. Each rewriting on the way is a file in ``passes``."""
