"""The bundle of one try on disk, and what is in it as typed events and observations."""
