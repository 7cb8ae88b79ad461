"""CUDA C, machine code for NVIDIA GPUs, and the driver that launches it."""
