"""What a tuning session found, for a kernel at its sizes on a device."""
