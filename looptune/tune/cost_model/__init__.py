"""The cost of a plan on a GPU, predicted by counting: nothing is compiled or run."""
