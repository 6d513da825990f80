"""The settings of a try: the table of options, and where their values come from."""
