"""The part of each dataset that was read or written, compared with the expected one."""
