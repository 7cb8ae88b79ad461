"""The files of other tools: what a search found, written so that they can read it; one file each."""
