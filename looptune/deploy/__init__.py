"""Deployment: write the results of a database as a module or C file that does not need looptune."""
