"""A bench for each fault, and the rows for ``make faults``."""

from __future__ import annotations

import pytest

from tests.faults import rows
from tests.faults.bench import Bench


@pytest.fixture
def bench(tmp_path, monkeypatch):
    made = Bench(tmp_path, monkeypatch)
    with made.resources:
        yield made


@pytest.fixture(scope="session")
def healthy(tmp_path_factory):
    """Give the datasets of the task to which nothing happens."""
    with pytest.MonkeyPatch.context() as patched:
        run = Bench(tmp_path_factory.mktemp("healthy"), patched).ours()
    assert run.outcome == "succeeds"
    assert run.declared == ()
    assert run.datasets
    return run.datasets


@pytest.fixture
def tried(record_property):
    """Note the row of a fault, for the table; and see that nothing is wrong with it."""

    def tried(*args, **kwargs):
        row = rows.row(*args, **kwargs)
        record_property("fault", row.document())
        if row.problems:
            pytest.fail("; ".join(row.problems), pytrace=False)

    return tried
