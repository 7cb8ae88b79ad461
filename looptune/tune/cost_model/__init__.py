"""What a plan would take on a GPU, by counting: nothing is compiled or run."""
