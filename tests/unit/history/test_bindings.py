"""Which version a read got."""

from __future__ import annotations

import pytest

from tests.unit.history.worlds import at, event, read, tables, write


@pytest.fixture
def bound(tmp_path):
    """Give what run ``r`` got, which read from minute 10 on and ended in minute 20."""

    def bound(what, *writers, columns="version_run_id", **fields):
        reader = event("r", at(20), what, **{"started": at(10)} | fields)
        return tables(tmp_path, [*writers, reader])(columns, "bindings", "reader_run_id = 'r'")

    return bound


def writer(run_id, minute, *what):
    return event(run_id, at(minute), *what, started=at(0))


def test_a_read_gets_the_last_write_before_it(bound):
    writers = [writer(run, n, write("dt=1")) for run, n in (("a", 1), ("b", 2), ("c", 11))]
    found = bound(read("dt=1"), *writers, columns="version_run_id, valid_to::TEXT, is_certain")
    assert found == [("b", "2024-10-15 00:11:00", True)]


@pytest.mark.parametrize(("minute", "got"), [(9, "a"), (10, "a"), (11, None)])
def test_a_write_that_ended_when_the_read_began_counts(bound, minute, got):
    assert bound(read("dt=1"), writer("a", minute, write("dt=1"))) == [got]


def test_a_read_gets_all_that_was_added(bound):
    writers = [
        *(writer("z", 1, write("dt=1")), writer("a", 2, write("dt=1"))),
        *(writer("b", 3, write("dt=1", mode="append")), writer("c", 4, write("dt=2"))),
        *(writer("d", 12, write("dt=1", mode="append")), writer("e", 13, write("dt=1"))),
    ]
    assert bound(read("dt=1"), *writers) == ["a", "b"]


def test_of_what_nobody_wrote_the_version_is_not_known(bound):
    found = bound(read("dt=1"), writer("a", 1, write("dt=2")), columns="cell, version_run_id")
    assert found == [("dt=1", None)]


@pytest.mark.parametrize("mode", ["truncate", "drop", "removed"])
def test_of_what_was_emptied_there_is_no_version(bound, mode):
    writers = [writer("a", 1, write("dt=1")), writer("b", 2, write("dt=1", mode=mode))]
    assert bound(read("dt=1"), *writers) == [None]


def test_certainty_is_that_of_the_time_of_the_read(bound):
    later = writer("b", 11, write("dt=1", mode="unknown"))
    sooner = writer("b", 9, write("dt=1", mode="unknown"))
    first = writer("a", 1, write("dt=1"))
    columns = "version_run_id, is_certain"
    assert bound(read("dt=1"), first, later, columns=columns) == [("a", True)]
    assert bound(read("dt=1"), first, sooner, columns=columns) == [("a", False), ("b", True)]


def test_who_nobody_saw_starting_is_bound_uncertainly(bound):
    found = bound(
        *(read("dt=1"), writer("a", 1, write("dt=1"))),
        columns="version_run_id, is_certain",
        started=None,
    )
    assert found == [("a", False)]


@pytest.mark.parametrize("started", [at(10), at(20), None])
def test_a_run_does_not_read_what_it_writes(tmp_path, started):
    reader = event("r", at(20), read("dt=1"), write("dt=1"), started=started)
    rows = tables(tmp_path, [writer("a", 1, write("dt=1")), reader])
    assert rows("version_run_id", "bindings") == ["a"]
    assert rows("run_id, replaced_by", "changes") == [("a", "r"), ("r", None)]


def test_what_a_run_leaves_uncertain_was_certain_when_it_read(tmp_path):
    both = (read("dt=1"), write(extent="unknown"))
    rows = tables(
        tmp_path, [event("a", at(1), write("dt=1")), event("b", at(2), *both, started=at(2))]
    )
    assert rows("version_run_id, is_certain", "bindings") == [("a", True)]


def test_a_failed_run_has_read(bound):
    assert bound(read("dt=1"), writer("a", 1, write("dt=1")), event_type="FAIL") == ["a"]


def test_a_cell_that_is_listed_twice_is_read_once(tmp_path):
    reader = event("r", at(20), read("dt=1"), read("dt=1", evidence="listener"), started=at(10))
    rows = tables(tmp_path, [writer("a", 1, write("dt=1")), reader])
    assert rows("version_run_id", "bindings") == ["a"]


# --- more than a partition ------------------------------------------------------------------------


@pytest.mark.parametrize("extent", ["all", "unknown", "condition", "range"])
def test_a_read_of_more_is_one_row_that_names_no_version(bound, extent):
    writers = [writer("a", 1, write("dt=1")), writer("b", 2, write("dt=2"))]
    found = bound(read(extent=extent), *writers, columns="extent, cell, version_run_id")
    assert found == [(extent, None, None)]


def test_a_read_of_nothing_is_not_bound(bound):
    assert bound(read(extent="none"), writer("a", 1, write("dt=1"))) == []


def test_a_write_to_the_whole_is_what_each_cell_has(bound):
    found = bound(
        *(read("dt=1"), writer("a", 1, write()), writer("b", 2, write(mode="append"))),
        columns="version_run_id, version_extent, version_cell, is_certain",
    )
    assert found == [("a", "all", None, True), ("b", "all", None, True)]


def test_the_whole_is_replaced_by_the_whole(bound):
    writers = [
        *(writer("a", 1, write("dt=1")), writer("b", 2, write())),
        *(writer("c", 3, write("dt=1", mode="append")), writer("d", 12, write())),
    ]
    assert bound(read("dt=1"), *writers) == ["b", "c"]


def test_a_cell_that_was_replaced_has_no_more_of_the_whole_before(bound):
    writers = [writer("a", 1, write()), writer("b", 2, write("dt=1"))]
    assert bound(read("dt=1"), *writers) == ["b"]
    assert bound(read("dt=2"), *writers) == ["a"]


def test_an_emptied_cell_has_only_what_the_whole_got_later(bound):
    writers = [
        *(writer("a", 1, write()), writer("b", 2, write("dt=1", mode="drop"))),
        writer("c", 3, write(mode="append")),
    ]
    assert bound(read("dt=1"), *writers) == ["c"]
    assert bound(read("dt=1"), *writers[:2]) == [None]


@pytest.mark.parametrize(
    ("fields", "got"),
    [
        ({"extent": "unknown"}, [("a", True), ("b", False)]),
        ({"extent": "condition"}, [("a", True), ("b", False)]),
        (
            {"extent": "range", "first_partition": "dt=3", "last_partition": "dt=5"},
            [("a", True), ("b", False)],
        ),
        ({"extent": "range", "first_partition": "dt=5", "last_partition": "dt=6"}, [("a", True)]),
    ],
    ids=str,
)
def test_what_may_have_written_the_cell_is_bound_uncertainly(bound, fields, got):
    writers = [
        writer("a", 1, write("dt=4", mode="append")),
        writer("b", 2, write(mode="append", **fields)),
    ]
    found = bound(read("dt=4"), *writers, columns="version_run_id, is_certain")
    assert found == got


# --- other dimensions -----------------------------------------------------------------------------


def test_a_coarse_read_gets_the_finer_cells_in_it(bound):
    writers = [
        *(writer("a", 1, write("dt=1/region=eu")), writer("b", 2, write("dt=1/region=us"))),
        writer("c", 3, write("dt=2/region=eu")),
    ]
    found = bound(read("dt=1"), *writers, columns="cell, version_run_id, version_cell, is_certain")
    assert found == [
        ("dt=1", "a", "dt=1/region=eu", True),
        ("dt=1", "b", "dt=1/region=us", True),
    ]


def test_a_fine_read_gets_the_coarser_cell_around_it(bound):
    writers = [writer("a", 1, write("dt=1")), writer("b", 2, write("dt=2"))]
    assert bound(read("dt=1/region=eu"), *writers) == ["a"]


def test_cells_of_other_dimensions_meet_where_the_common_ones_agree(bound):
    writers = [writer("a", 1, write("dt=1/hour=5")), writer("b", 2, write("dt=2/hour=5"))]
    found = bound(read("dt=1/region=eu"), *writers, columns="version_run_id, is_certain")
    assert found == [("a", False)]


def test_cells_without_a_common_dimension_meet(bound):
    found = bound(
        *(read("region=eu"), writer("a", 1, write("dt=1"))), columns="version_run_id, is_certain"
    )
    assert found == [("a", False)]


def test_a_finer_cell_that_was_replaced_hides_the_coarser_one(bound):
    writers = [writer("a", 1, write("dt=1")), writer("b", 2, write("dt=1/region=eu"))]
    assert bound(read("dt=1/region=eu"), *writers) == ["b"]
    assert bound(read("dt=1"), *writers) == ["a", "b"]
