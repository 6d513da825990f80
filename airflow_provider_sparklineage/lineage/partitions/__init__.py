"""Find the part of each dataset that was read or written, and compare it with the expected part."""
