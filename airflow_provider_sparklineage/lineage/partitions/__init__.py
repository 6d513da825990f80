"""Which part of each dataset was read or written, and how that compares with what was expected."""
