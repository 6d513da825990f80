"""What the application had written by the time that it read: which reads are internal."""
