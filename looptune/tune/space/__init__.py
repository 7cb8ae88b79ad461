"""Which configurations there are: written in the file, in a space file, or derived from the loops."""
