"""The one event of a try: its content, the steps that it goes through, and where it is kept."""
