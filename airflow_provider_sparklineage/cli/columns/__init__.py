"""Where columns come from and where they go, through any number of merged events."""
