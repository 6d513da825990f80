"""Reads and writes that the observer saw in the driver, bound to datasets and actions."""
