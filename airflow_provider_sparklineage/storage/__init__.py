"""Files in stores on other machines, and calls to these stores with a limit of time."""
