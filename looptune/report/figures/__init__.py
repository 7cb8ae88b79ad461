"""The figures, one in each module. Only this package imports matplotlib."""
