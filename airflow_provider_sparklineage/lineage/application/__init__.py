"""The reports of one application: the events of the listener, accumulated and repaired."""
