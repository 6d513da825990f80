"""The settings of a try: the table of options, and the sources of their values."""
