"""Files that are not on this machine, and calls to their stores with a limit of time."""
