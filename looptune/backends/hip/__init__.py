"""HIP C++ for AMD GPUs, as text."""
