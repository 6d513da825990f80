"""Links from a task instance to its lineage in the backend's web pages."""
