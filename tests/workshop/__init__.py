"""The workshop: how the tree is cut, and whether pins, pictures and pages are up to date."""
