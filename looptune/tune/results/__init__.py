"""The results of tuning sessions, for a kernel at its sizes on a device."""
