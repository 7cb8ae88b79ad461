"""Who compiles and measures: processes of this machine, or the workers of a Dask cluster."""
