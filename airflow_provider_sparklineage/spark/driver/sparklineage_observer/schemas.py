"""The columns of what is read, in the first read of each relation; later ones cost no call."""

import json

_MAX_BYTES = 1024 * 1024


class Schemas:
    """Knows of which relations the columns were described."""

    def __init__(self):
        self._described = set()

    def describe(self, read, kind, scan):
        """Add the columns of the full relation to its first read."""
        bases = [layout["base"] for layout in read.get("layouts", ())]
        key = (*(read.get("roots") or bases), read.get("table"))
        if key in self._described or not any(key):
            return
        self._described.add(key)
        text = _schema(kind, scan).json()
        if len(text) <= _MAX_BYTES:
            read["schema"] = json.loads(text)


def _schema(kind, scan):
    if kind == "FileSourceScanExec":
        return scan.relation().schema()
    if kind == "HiveTableScanExec":
        return scan.relation().tableMeta().schema()
    return scan.table().schema()
