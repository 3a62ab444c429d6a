"""Where exports go: folders, tar archives, standard output."""
