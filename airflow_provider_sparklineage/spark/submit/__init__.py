"""Adds the listener, the observer and a bundle to a submission, and changes nothing else."""
