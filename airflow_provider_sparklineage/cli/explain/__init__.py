"""What is expected of a task before it runs: ``explain``."""
