"""Where files are kept that are not on this machine, and how long it may take to ask."""
