"""The capture bundle of a try on disk, and readers that decode its events and observations."""
