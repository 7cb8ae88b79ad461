"""Tasks that compile and measure run in processes of this machine, or on the workers of a Dask cluster."""
