"""What the observer would have recorded next to the golden events of ``staging_chain``."""

from __future__ import annotations

STARTED = 1795230325898
"""The first of the recorded events' writes, in ms."""
ENDED = 1795230345135


def written(*days):
    """Make the observer's records of one write to the partitions ``dt`` of ``/lake/revenue``."""
    layout = {
        "base": "file:/lake/revenue",
        "dimensions": [{"field": "dt", "transform": "identity", "type": "string"}],
        "partitions": [[day] for day in days],
    }
    write = {
        "node": "InsertIntoHadoopFsRelationCommand",
        "path": "file:/lake/revenue",
        "mode": "dynamic",
        "how": "exact",
        "layouts": [layout],
    }
    query = {"kind": "query", "started": STARTED, "ended": ENDED, "reads": [], "writes": [write]}
    return [{"kind": "start"}, query]
