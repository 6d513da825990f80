"""The one event of a try: what it says, the steps that it goes through, and where it is kept."""
