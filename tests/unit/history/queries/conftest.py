from __future__ import annotations

import pytest

from tests.unit.history.queries.asked import Asked


@pytest.fixture
def history(tmp_path):
    """Give the history of events."""
    return lambda *events: Asked(tmp_path, events)
