"""Answers of the history as tables for people."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.cli.history import questions, tables
from airflow_provider_sparklineage.cli.history.tables import print_hops
from airflow_provider_sparklineage.history.queries.answers import Dataset, Plan, Reason, Step
from airflow_provider_sparklineage.history.queries.walk import Size
from airflow_provider_sparklineage.model.datasets import PARTS, DatasetName, short_names
from airflow_provider_sparklineage.model.exceptions import UnusableInputError


def hop(depth=0, name="/lake/orders", **values):
    return {
        "depth": depth,
        "dataset": {"namespace": "file", "name": name},
        "partition": {"dt": "2024-10-15"},
        "column": None,
        "run": {"run_id": "r", "job": "shop.load", "ended": "2024-10-15T03:04:05.678Z"},
        "transformations": (),
        "is_certain": True,
        **values,
    }


def names_of(rows):
    causes = [row["cause"] for row in rows if "cause" in row]
    return short_names((DatasetName(**one["dataset"]) for one in (*rows, *causes)), PARTS)


def printed(*hops, is_all=False):
    file = io.StringIO()
    print_hops(hops, file, names=names_of(hops), empty="Nothing.", is_all=is_all)
    return file.getvalue()


def test_a_hop_is_a_line_with_what_when_and_by_whom():
    [title, line] = printed(hop()).split("\n")[:2]
    assert title.split() == ["hop", "dataset", "partition", "written", "by", "at", "(UTC)"]
    assert line.split() == ["0", "orders", "dt=2024-10-15", "load", "2024-10-15", "03:04"]


def test_jobs_of_one_task_name_are_distinguished():
    text = printed(hop(), hop(1, run={"run_id": "s", "job": "other.load", "ended": None}))
    assert "shop.load" in text
    assert "other.load" in text


def test_a_column_of_the_table_is_there_if_something_is_in_it():
    how = [{"type": "DIRECT", "subtype": "AGGREGATION"}, {"type": "DIRECT", "masking": True}]
    text = printed(hop(), hop(1, "/lake/prices", column="price", transformations=how))
    assert "column" in text
    assert "aggregation + direct, masked" in text


def test_what_is_not_certain_or_not_known_says_so():
    text = printed(hop(is_certain=False), hop(run=None, partition=None), hop(note="no columns"))
    assert "not certain" in text
    assert re.search(r" all +nobody known", text)
    assert "no columns" in text


def test_datasets_of_one_name_are_distinguished():
    text = printed(hop(name="/a/orders"), hop(name="/b/orders"))
    assert "a/orders" in text
    assert "b/orders" in text


def test_a_name_does_not_control_the_terminal():
    text = printed(hop(name="/lake/\x1b[31m [red]orders"))
    assert "\x1b" not in text
    assert "[red]orders" in text


def test_rows_beyond_those_that_people_read_are_counted():
    text = printed(*[hop(n, f"/lake/t{n}") for n in range(tables.MAX_ROWS + 7)])
    assert text.count(" load ") == tables.MAX_ROWS
    assert "… and 7 more; --json prints all." in text


def days(count):
    return [
        hop(
            partition={"dt": f"2024-10-{day:02}"},
            run={"run_id": f"r{day}", "job": "shop.load", "ended": f"2024-10-{day:02}T03:00:00Z"},
        )
        for day in range(1, count + 1)
    ]


def test_what_differs_in_the_partition_alone_is_one_line_if_it_would_be_many():
    text = printed(*days(21), hop(1, "/lake/prices"))
    assert re.search(r"orders +21: dt=2024-10-01 … dt=2024-10-21 +load ", text)
    assert "2024-10-01 03:00 … 2024-10-21 03:00" in text
    assert "22 in 2 lines; --all has a line for each." in text


@pytest.mark.parametrize(("count", "is_all"), [(20, False), (30, True)])
def test_few_lines_are_not_grouped_and_none_if_all_are_wanted(count, is_all):
    text = printed(*days(count), is_all=is_all)
    assert text.count(" load ") == count
    assert "lines" not in text


def test_columns_of_a_version_are_one_line_by_what_was_done_with_them():
    how = [{"type": "DIRECT", "subtype": "IDENTITY"}]
    chose = [[{"type": "INDIRECT", "subtype": kind}] for kind in ("FILTER", "GROUP_BY")]
    hops = [hop(1, column=one, transformations=how) for one in ("b", "a")]
    hops += [hop(1, column=one, transformations=of) for one, of in zip("cd", chose, strict=True)]
    text = printed(*hops)
    assert re.search(r"orders +dt=2024-10-15 +a, b .* identity +\n", text)
    assert re.search(r"orders +dt=2024-10-15 +c, d .* filter \+ group by\n", text)


def test_times_of_one_day_name_it_once():
    assert tables.span_text("2024-10-01 03:00", "2024-10-01 04:00") == "2024-10-01 03:00 … 04:00"


def test_a_row_is_one_line_where_the_output_is_no_terminal():
    long = "x" * 190
    text = printed(hop(name=f"/lake/{long}", partition={"dt": long}))
    assert f"{long}  dt={long[:-3]}" in text


def test_columns_whose_values_went_on_come_before_those_that_chose_rows():
    conditions = [{"type": "INDIRECT", "subtype": "FILTER"}]
    values = [{"type": "DIRECT", "subtype": "IDENTITY"}, *conditions]
    text = printed(
        hop(1, column="a", transformations=conditions), hop(1, column="b", transformations=values)
    )
    assert text.index("identity + filter") < text.index(" filter\n")


def test_no_hop_is_a_sentence():
    assert printed() == "Nothing.\n"


@pytest.mark.parametrize(
    ("partition", "text"),
    [
        (None, "all"),
        ({"dt": "2024-10-15", "region": "eu"}, "dt=2024-10-15/region=eu"),
        ({"dt": None}, "dt=null"),
    ],
)
def test_a_partition_is_written_as_on_the_command_line(partition, text):
    assert tables.partition_text(partition) == text


@pytest.mark.parametrize(
    ("text", "time"),
    [
        (None, None),
        ("2024-10-16", datetime(2024, 10, 16, tzinfo=UTC)),
        ("2024-10-16T08:00+02:00", datetime(2024, 10, 16, 6, tzinfo=UTC)),
        (" 2024-10-16 08:00 ", datetime(2024, 10, 16, 8, tzinfo=UTC)),
    ],
)
def test_a_time_is_in_utc_if_it_has_no_offset(text, time):
    assert questions.time_of(text) == time


def test_what_is_no_time_is_named_with_an_example():
    with pytest.raises(UnusableInputError, match=r"--as-of yesterday is no time. Write it as 2024"):
        questions.time_of("yesterday")


# --- stale and gaps: few lines for many partitions ------------------------------------------------


def stale(day, source="/lake/orders", at="2024-11-01T00:00:00Z", partition=None):
    cause = {"dataset": {"namespace": "file", "name": source}, "how": "overwrite", "at": at}
    cause |= {"partition": {"dt": partition or "2024-10-01"}, "is_first": False}
    return {**days(31)[day - 1], "is_direct": True, "cause": cause}


def lines_of(printing, *rows, **settings):
    file = io.StringIO()
    printing(rows, file, **settings)
    return [" ".join(line.split()) for line in file.getvalue().splitlines()]


def print_stale(rows, file, **settings):
    questions.print_stale(rows, file, names=names_of(rows), **settings)


def test_stale_partitions_of_one_cause_are_one_line():
    [_, line, *_] = lines_of(print_stale, *(stale(day) for day in range(1, 4)))
    assert line == (
        "orders 3: dt=2024-10-01 … dt=2024-10-03 "
        "orders dt=2024-10-01 was rewritten 2024-11-01 00:00"
    )


def test_many_causes_in_one_dataset_are_one_line():
    rows = [
        stale(day, at=f"2024-11-{day:02}T00:00:00Z", partition=f"2024-10-{day:02}")
        for day in range(1, 31)
    ]
    [_, line, count, *_] = lines_of(print_stale, *rows)
    assert line == (
        "orders 30: dt=2024-10-01 … dt=2024-10-30 orders 30: dt=2024-10-01 … dt=2024-10-30 "
        "was rewritten 2024-11-01 00:00 … 2024-11-30 00:00"
    )
    assert count == "30 in 1 line; --all has a line for each."
    assert len(lines_of(print_stale, *rows, is_all=True)) == 1 + 30 + 1


def gap(day, region):
    return {
        "partition": {"dt": f"2024-10-{day}", "region": region},
        "namespace": "airflow",
        "job": "shop.load",
        "dag_id": "shop",
        "dag_run_id": f"day-{day}",
        "logical_date": f"2024-10-{day:02}T00:00:00Z",
        "reason": "no_run",
    }


@pytest.mark.parametrize(
    ("days", "first", "count"),
    [
        (range(8, 10), "dt=2024-10-8/region=r0 shop day-8", 20),
        (range(8, 11), "10: dt=2024-10-8/region=r0 … dt=2024-10-8/region=r9 shop day-8", 3),
        (range(8, 31), "230: dt=2024-10-8/region=r0 … dt=2024-10-30/region=r9 shop 23: day-8 …", 1),
    ],
    ids=["few: each", "more: by DAG run", "many: by reason"],
)
def test_gaps_are_as_many_lines_as_people_read(days, first, count):
    rows = [gap(day, f"r{n}") for day in days for n in range(10)]
    [_, *lines] = lines_of(questions.print_gaps, *rows)
    assert lines[0].startswith(first)
    assert sum("no run" in line for line in lines) == count
    every = lines_of(questions.print_gaps, *rows, is_all=True)
    assert sum("no run" in line for line in every) == len(rows)


# --- narrow and wide terminals --------------------------------------------------------------------


class Terminal(io.StringIO):
    """An output that is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def in_terminal(monkeypatch):
    """Print in a terminal of some width; give the lines, without colours."""

    def in_terminal(width, printing, *arguments, **settings):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")
        file = Terminal()
        printing(*arguments, file, **settings)
        text = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())
        return [line.rstrip() for line in text.splitlines()]

    return in_terminal


def steps(count):
    reason = Reason(Dataset("file", "/lake/orders"), {"dt": "2024-10-08"}, ("amount → total",))
    ended = datetime(2024, 10, 9, 3, 4, 5, tzinfo=UTC)
    return Plan(
        tuple(
            Step(
                *("daily_sales_reports", "make_report", f"scheduled__2024-10-{day:02}T00:00:00"),
                *(-1, f"r{day}", ended, 0, (reason,)),
            )
            for day in range(9, 9 + count)
        )
    )


ORDERS = {DatasetName("file", "/lake/orders"): "orders"}


def test_in_80_columns_the_dag_is_above_its_tasks_and_the_reason_below_them(in_terminal):
    assert in_terminal(80, tables.print_plan, steps(2), names=ORDERS) == [
        "To clear, in this order",
        "#  wave  task         DAG run                         last ran (UTC)",
        "daily_sales_reports",
        "1  1     make_report  scheduled__2024-10-09T00:00:00  2024-10-09 03:04",
        "2  1     make_report  scheduled__2024-10-10T00:00:00  2024-10-09 03:04",
        "    because: read orders dt=2024-10-08 (amount → total)",
    ]


def test_tasks_of_two_airflows_are_distinguished_where_they_have_one_name(in_terminal):
    first, other = steps(2).steps
    plan = Plan((replace(first, namespace="prod"), replace(other, namespace="test")))
    [_, titles, *rows] = in_terminal(200, tables.print_plan, plan, names=ORDERS)
    assert "namespace" in titles
    assert [row.split()[-7] for row in rows] == ["prod", "test"]
    alone = Plan((replace(first, namespace="prod"),))
    assert "namespace" not in "".join(in_terminal(200, tables.print_plan, alone, names=ORDERS))


def test_gaps_of_two_airflows_are_distinguished_where_their_tasks_have_one_name():
    rows = [gap(8, "eu"), {**gap(8, "us"), "namespace": "test"}]
    [_, *lines] = lines_of(questions.print_gaps, *rows)
    assert [line.split()[3] for line in lines] == ["airflow", "test"]


def test_where_there_is_width_a_row_is_a_line(in_terminal):
    [_, titles, *rows] = in_terminal(200, tables.print_plan, steps(2), names=ORDERS)
    assert titles.split() == ["#", "wave", "task", "DAG", "run", "last", "ran", "(UTC)", "because"]
    assert [row.split()[2] for row in rows] == ["daily_sales_reports.make_report"] * 2
    assert all(row.endswith("read orders dt=2024-10-08 (amount → total)") for row in rows)


def wide_rows():
    how = [{"type": "DIRECT", "subtype": "AGGREGATION"}]
    many = [f"column_{n}" for n in range(4)]
    rows = [
        hop(1, f"/lake/{'x' * 20}_{n}", column=c, transformations=how) for n in (1, 2) for c in many
    ]
    return [*rows, hop(2, note="no columns are known of it", is_certain=False)]


ROWS = {
    "hops": lambda out, width: out(
        width, print_hops, wide_rows(), names=names_of(wide_rows()), empty=""
    ),
    "plan": lambda out, width: out(width, tables.print_plan, steps(3), names=ORDERS),
    "stale": lambda out, width: out(
        width, print_stale, [stale(day, f"/lake/{'x' * 30}") for day in (1, 2)]
    ),
    "gaps": lambda out, width: out(
        width, questions.print_gaps, [gap(day, f"region-{'y' * 20}") for day in (8, 9)]
    ),
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("width", [80, 100, 240])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_cut(in_terminal, rows, width):
    lines = ROWS[rows](in_terminal, width)
    assert max(map(len, lines)) <= width
    assert words(ROWS[rows](in_terminal, 1_000)) <= words(lines)


def words(lines):
    """Give the words of a table; a task has its DAG next to it or above it."""
    found = {word.strip(":;") for line in lines for word in line.split()}
    return {word.removeprefix("daily_sales_reports.") for word in found}


def test_what_has_no_room_at_all_is_folded(in_terminal):
    lines = in_terminal(30, print_hops, [hop(name=f"/lake/{'x' * 50}")], names={}, empty="")
    assert max(map(len, lines)) <= 30
    assert "".join("".join(lines).split()).count("x") == 50


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (Size(3, 3, 1_234, 5_600), "They have 1,234 rows, 5.6 kB.\n"),
        (Size(3, 2, 0, 7_000_000), "2 of 3 have a known size: 7 MB.\n"),
        (Size(3, 1, 5, 0), "1 of 3 have a known size: 5 rows.\n"),
        (Size(3, 0, 0, 0), ""),
        (Size(1, 1, 0, 12), "They have 12 bytes.\n"),
    ],
)
def test_sizes_are_printed_as_far_as_they_are_known(size, text):
    file = io.StringIO()
    tables.print_size(size, file)
    assert file.getvalue() == text


def test_a_plan_names_what_was_read_of_a_dataset_once():
    reasons = tuple(
        Reason(Dataset("file", "/lake/orders"), {"dt": f"2024-10-{n}"}, ("a → b",))
        for n in range(8, 13)
    )
    step = Step("shop", "make", "day", -1, "r", None, 0, reasons)
    file = io.StringIO()
    names = {DatasetName("file", "/lake/orders"): "orders"}
    tables.print_plan(Plan((step,)), file, names=names)
    assert "read orders 5: dt=2024-10-8 … dt=2024-10-12 (a → b)" in file.getvalue()
