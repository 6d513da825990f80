"""The bundle of one try on disk, and its files as typed events and observations."""
