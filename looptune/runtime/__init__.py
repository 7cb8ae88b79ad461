"""Devices, inputs, reference results, verification and timing."""
