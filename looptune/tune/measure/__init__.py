"""From a configuration to an outcome: reference, checks, early cut-off, times."""
