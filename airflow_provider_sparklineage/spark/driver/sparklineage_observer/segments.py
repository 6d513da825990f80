"""The whole lines of a file that grows, a segment at a time."""

import os

_BYTES = 8 * 1024 * 1024  # of a segment, unless one line is longer


class Segments:
    """Knows what of a file is delivered.

    pending: the segment that was taken and is not delivered yet; it stays the same until it is
    """

    def __init__(self, kind, file):
        self.kind = kind
        self.pending = b""
        self.delivered = 0
        self._file = file
        self._at = 0
        self._identity = None

    @property
    def name(self):
        """Of the pending segment."""
        return f"{self.kind}-{self.delivered + 1:05d}.ndjson"

    def take(self):
        """Take the lines that are new, unless some are pending; whether any are."""
        if not self.pending:
            self.pending = self._lines()
            self._at += len(self.pending)
        return bool(self.pending)

    def put(self):
        """Note that the pending segment is delivered."""
        self.pending = b""
        self.delivered += 1

    def left(self):
        """Describe what is not taken; empty if that is nothing."""
        if not os.path.exists(self._file):
            return ""
        size = os.path.getsize(self._file) - self._at
        return f"the last {size} bytes of the {self.kind} are no whole line" if size > 0 else ""

    def _lines(self):
        if not os.path.exists(self._file):  # nothing was written yet
            return b""
        with open(self._file, "rb") as file:
            status = os.fstat(file.fileno())
            identity = (status.st_dev, status.st_ino)
            if identity != self._identity or status.st_size < self._at:
                self._at = 0  # it is another one, of which all is new
            self._identity = identity
            file.seek(self._at)
            found = b""
            while True:
                more = file.read(_BYTES)
                found += more
                end = found.rfind(b"\n") + 1
                if end or not more:
                    return found[:end]
