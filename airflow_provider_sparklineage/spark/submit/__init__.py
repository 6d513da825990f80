"""A submission to the same submission with the listener, the observer and a bundle in it."""
