"""Kernels in OpenCL C."""
