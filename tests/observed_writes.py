"""What the observer would have recorded next to the golden events of ``staging_chain``."""

from __future__ import annotations

import json
from datetime import datetime

from tests.conftest import golden


def _times():
    """Give when the recorded application began and ended, in ms."""
    lines = golden("staging_chain").read_text().splitlines()
    times = [datetime.fromisoformat(json.loads(line)["eventTime"]) for line in lines]
    return [int(time.timestamp() * 1000) for time in (min(times), max(times))]


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
    started, ended = _times()
    query = {"kind": "query", "started": started, "ended": ended, "reads": [], "writes": [write]}
    return [{"kind": "start"}, query]


def days_read(*days):
    """Make the observer's records of one read of the partitions ``dt`` of ``/lake/orders``."""
    layout = {
        "base": "file:/lake/orders",
        "dimensions": [{"field": "dt", "transform": "identity", "type": "string"}],
        "partitions": [[day] for day in days],
    }
    scan = {"node": "FileSourceScanExec", "layouts": [layout], "roots": ["file:/lake/orders"]}
    started, ended = _times()
    query = {"kind": "query", "started": started, "ended": ended, "reads": [scan], "writes": []}
    return [{"kind": "start"}, query]
