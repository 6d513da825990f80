"""A random small lake: of every read and write, what is observed is what is true.

What a write did is what the lake has afterwards: new files by their names, Delta's log, Iceberg's
metadata tables. What a read selected follows from the plan: the partitions that were there at that
time and match the filter. Spark's planner is not asked for either.

The plans are the same each time. `RANDOM_LAKES=50` makes 50 other ones of each kind; of a failure,
the message has the lake's full plan, to be kept in `EXAMPLES`.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections import defaultdict
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests import record_events
from tests.spark import submissions

pytestmark = [pytest.mark.spark, pytest.mark.long]

KINDS = ("files", "table", "delta", "iceberg")
RANDOM = os.environ.get("RANDOM_LAKES")
LAKES = int(RANDOM or 7)  # of each kind
SEED = uuid.uuid4() if RANDOM else 20240506
BATCH = 60  # lakes in one application

# --- plans ----------------------------------------------------------------------------------------

VALUES = {
    "string": [
        *["us", "eu", None, "a b/c=d", "zürich 東京", "100%", "a%20b+c", "semi;colon", "x, y"],
        *["{b}[c]", "back\\slash", "007", "null", "2024-05-06", "", "a: b#c?", "tab\t*"],
    ],
    "int": [1, 2, 10, -5, None],
    "date": ["2024-05-05", "2024-05-06", "2024-02-29", "1969-12-31", None],
}
NOWHERE = {"string": "nowhere", "int": 999, "date": "1999-01-01"}
MODES = {
    "files": ["append", "whole", "dynamic option", "dynamic session"],
    "table": ["append", "whole", "static", "dynamic session", "recreate"],
    "delta": ["append", "whole", "static", "dynamic option", "dynamic session"],
    "iceberg": ["append", "whole", "static", "dynamic option", "dynamic session"],
}


@st.composite
def conditions(draw, types, pools):
    column = draw(st.integers(0, len(types) - 1))
    values = [v for v in pools[column] if v is not None] or [NOWHERE[types[column]]]
    kind = draw(
        st.sampled_from(["eq", "in", "range", "not", "null", "not null", "eq", "in", "nowhere"])
    )
    chosen = []
    if kind == "nowhere":
        kind, chosen = "eq", [NOWHERE[types[column]]]
    elif kind in ("eq", "not"):
        chosen = [draw(st.sampled_from(values))]
    elif kind == "in":
        chosen = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    elif kind == "range":
        chosen = sorted(draw(st.lists(st.sampled_from(values), min_size=2, max_size=2)))
    return {"column": column, "kind": kind, "values": chosen}


# A bucket is a matter of a hash, which has no order.
TRANSFORMS = {
    "string": ["bucket(4, {})", "truncate(2, {})"],
    "int": ["bucket(4, {})", "truncate(10, {})"],
    "date": ["days({})", "bucket(4, {})"],
}


@st.composite
def reads(draw, types, pools, kind, transforms):
    if kind == "files" and draw(st.integers(0, 4)) == 0:
        # Which folders there are is known only when there are some.
        return {
            "what": "read",
            "folder": draw(st.integers(0, 9)),
            "depth": draw(st.integers(1, len(types))),
            "base_path": draw(st.booleans()),
            "filters": [[]],
            "junction": "and",
        }
    filters = st.lists(conditions(types, pools), max_size=2)
    operation = {
        "what": "read",
        "filters": draw(st.lists(filters, min_size=1, max_size=2)),
        "junction": draw(st.sampled_from(["and", "and", "or"])),
        "grouped": draw(st.booleans()),
    }
    # Whether Spark sees a use in pruning by a transform, the plan does not show.
    joins = [] if transforms[0] else ["join", "join"]
    how = draw(st.sampled_from(["plain", "plain", "copy", *joins]))
    if how == "join":
        # One scan, and no constant for the join's column: or Spark may see no use in pruning.
        others = [c for c in operation["filters"][0] if c["column"] > 0]
        operation["filters"] = [others[:1]]
        operation["tags"] = draw(st.lists(st.integers(0, len(pools[0])), min_size=1, max_size=2))
    operation["copy"] = how == "copy"
    return operation


@st.composite
def steps(draw, kind, pools, modes):
    mode = draw(st.sampled_from(modes))
    static = []
    if mode == "static":
        depth = draw(st.integers(1, len(pools))) if kind == "table" else 1
        static = [draw(st.sampled_from([v for v in p if v != ""] or [1])) for p in pools[:depth]]
    choices = [st.just(v) for v in static] + [st.sampled_from(p) for p in pools[len(static) :]]
    rows = draw(st.lists(st.tuples(*choices), max_size=5))
    return {
        "mode": mode,
        "static": static,
        "rows": [list(row) for row in rows],
        "repartition": draw(st.sampled_from([0, 0, 3])),
    }


@st.composite
def writes(draw, kind, pools, transforms):
    what = draw(st.sampled_from(["one", "one", "one", "two", "threads"]))
    # Where a partition has several values, one of them cannot be overwritten.
    modes = [m for m in MODES[kind] if m != "static" or not any(transforms)]
    any_mode, appended = steps(kind, pools, modes), steps(kind, pools, ["append"])
    if what == "threads":
        # Spark lets two writes of files into one folder disturb each other.
        same = draw(st.booleans()) if kind in ("delta", "iceberg") else False
        return {"what": what, "same": same, "steps": [draw(appended), draw(appended)]}
    both = [any_mode, appended] if what == "two" else [any_mode]
    return {"what": "write", "steps": [draw(step) for step in both]}


@st.composite
def lakes(draw, kind):
    types = draw(
        st.lists(st.sampled_from(["string", "string", "int", "date"]), min_size=1, max_size=2)
    )
    pools = [
        draw(st.lists(st.sampled_from(VALUES[t]), min_size=3, max_size=5, unique=True))
        for t in types
    ]
    rows = draw(st.lists(st.tuples(*map(st.sampled_from, pools)), min_size=3, max_size=8))
    transforms = [""] * len(types)
    if kind == "iceberg" and draw(st.booleans()):
        transforms = [draw(st.sampled_from(["", *TRANSFORMS[t]])) for t in types]
    first = {
        "mode": {"files": "whole", "table": "recreate"}.get(kind, "append"),
        "rows": [list(row) for row in rows],
    }
    operations = [{"what": "write", "steps": [first]}]
    for _ in range(draw(st.integers(2, 4))):
        operations.append(draw(writes(kind, pools, transforms)))
        some = reads(types, pools, kind, transforms)
        operations += draw(st.lists(some, min_size=1, max_size=2))
    return {
        "kind": kind,
        "types": types,
        "transforms": transforms,
        "mapped": kind == "delta" and draw(st.booleans()),
        "keys": pools[0],
        "values": [[*pool, NOWHERE[t]] for pool, t in zip(pools, types, strict=True)],
        "operations": operations,
    }


def example(kind, *operations, of_type="string", transform="", values=("us", "eu")):
    return {
        "kind": kind,
        "types": [of_type],
        "transforms": [transform],
        "mapped": False,
        "keys": list(values),
        "values": [list(values)],
        "operations": [*operations],
    }


def written(mode, *rows):
    step = {"mode": mode, "static": [], "rows": [list(row) for row in rows], "repartition": 0}
    return {"what": "write", "steps": [step]}


def joined(*tags):
    return {"what": "read", "filters": [[]], "junction": "and", "grouped": True, "tags": list(tags)}


def filtered(kind, *values):
    condition = {"column": 0, "kind": kind, "values": list(values)}
    return {"what": "read", "filters": [[condition]], "junction": "and", "grouped": False}


# Of defects that were found, and of what is drawn seldom; each is run with the random ones.
EXAMPLES = [
    # A file's status is printed with semicolons between its parts.
    example(
        "files", written("whole", ("semi;colon",), ("us",)), written("append", ("semi;colon",))
    ),
    # Adaptive execution takes a join out of the plan when one side was read and nothing matched.
    example("files", written("whole", ("us",), ("eu",)), joined(9)),
    # Delta's log leaves out the null values of removed files.
    example("delta", written("append", (None,), ("us",)), written("whole", ("eu",))),
    # Iceberg's scans keep the splits of before dynamic pruning, too.
    example("iceberg", written("append", ("us",), ("eu",)), joined(1)),
    example(
        "iceberg",
        written("append", ("2024-05-05",), ("2024-05-06",), (None,), ("1969-12-31",)),
        filtered("eq", "2024-05-06"),
        filtered("range", "1969-12-31", "2024-05-05"),
        filtered("not", "2024-05-06"),
        written("dynamic option", ("2024-05-06",)),
        of_type="date",
        transform="days({})",
        values=("2024-05-05", "2024-05-06", None, "1969-12-31"),
    ),
]


def drawn(kind):
    """Draw lakes of a kind."""
    chosen: list[dict] = []

    @seed(f"{SEED} {kind}")
    @settings(
        max_examples=LAKES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(plan=lakes(kind))
    def choose(plan):
        chosen.append(plan)

    choose()
    return chosen


def plans(kinds):
    """Give the examples and the random lakes; named, so that they can be distinguished."""
    found = [e for e in EXAMPLES if e["kind"] in kinds]
    for kind in kinds:
        found += drawn(kind)
    named = []
    for number, plan in enumerate(found):
        copied = json.loads(json.dumps(plan)) | {"name": f"l{number}"}
        for position, operation in enumerate(copied["operations"]):
            if operation.pop("copy", False):
                operation["copy_to"] = f"copies/l{number}_{position}"
        named.append(copied)
    return named


# --- what a plan's reads select -------------------------------------------------------------------


class Model:
    """The partitions of a relation, as the plan's writes make them.

    :param images: of each column the partition of each value, as Iceberg's own functions give it;
        None where the values are the partitions
    """

    def __init__(self, plan, images):
        self.kind, self.keys, self.transforms = plan["kind"], plan["keys"], plan["transforms"]
        self.images = [image and {json.dumps(v): i for v, i in image} for image in images or ()]
        self.partitions: set[tuple] = set()

    def write(self, step):
        rows = {self._stored(row) for row in step["rows"]}
        static = self._stored(step.get("static") or [])
        kept = {
            "append": self.partitions,
            "static": {p for p in self.partitions if p[: len(static)] != static},
        }
        if step["mode"].startswith("dynamic"):
            if static and len(static) == len(next(iter(self.partitions), ())):
                rows |= {static}
            kept[step["mode"]] = self.partitions
        self.partitions = kept.get(step["mode"], set()) | rows

    def _stored(self, row):
        """Files and Delta know no empty text as a partition; Iceberg does."""
        row = [self._image(column, value) for column, value in enumerate(row)]
        return tuple(None if v == "" and self.kind != "iceberg" else v for v in row)

    def _image(self, column, value):
        image = self.images[column] if self.images else None
        return image[json.dumps(value)] if image else value

    def selected(self, operation):
        found = set()
        for filters in operation["filters"]:
            matches = all if operation["junction"] == "and" or not filters else any
            found |= {p for p in self.partitions if matches(self._may_hold(p, c) for c in filters)}
        if operation.get("tags") is not None:
            keys = [self.keys[t] for t in operation["tags"] if t < len(self.keys)]
            found = {p for p in found if p[0] is not None and p[0] in keys}
        return found

    def _may_hold(self, partition, condition):
        """Whether a partition may hold a row for which a condition is true."""
        column, kind = condition["column"], condition["kind"]
        transform = self.transforms[column]
        if (kind == "not" and transform) or (kind == "range" and transform.startswith("bucket")):
            kind = "not null"
        values = [self._image(column, v) for v in condition["values"]]
        return _matches(partition[column], kind, values)

    def inside(self, values):
        """Give the partitions inside of a partition's folder."""
        return {p for p in as_texts(self.partitions) if p[: len(values)] == tuple(values)}


def _matches(value, kind, values):
    if kind in ("null", "not null"):
        return (value is None) is (kind == "null")
    if value is None:
        return False
    if kind == "range":
        return values[0] <= value <= values[1]
    return value not in values if kind == "not" else value in values


def as_texts(partitions):
    return {tuple(None if v is None else str(v) for v in p) for p in partitions}


def folder_of(plan):
    above = {"table": "warehouse", "iceberg": "iceberg/db"}.get(plan["kind"], plan["kind"])
    return f"{above}/{plan['name']}"


# --- what was observed ----------------------------------------------------------------------------


class Observed:
    """What the observer's file has of the time of one operation, by folder."""

    def __init__(self, records, root, times):
        self._root = root
        begin, end = times["begin"] - 1, times["end"] + 1
        during = [r for r in records if r.get("kind") == "query" and begin <= r["started"] <= end]
        self.reads = self._by_folder(y for r in during for x in r["reads"] for y in self._known(x))
        self.writes = [
            w
            for r in records
            for w in r.get("writes", ())
            if begin <= w.get("time", r.get("started")) <= end
        ]
        self.written = self._by_folder(x for w in self.writes for x in w["layouts"])
        self.removed = self._by_folder(x for w in self.writes for x in w.get("removed", ()))

    @staticmethod
    def _known(read):
        if read.get("not_data"):
            return []
        return read["layouts"] if "cut" not in read else [{"base": read["cut"], "partitions": [[]]}]

    def _by_folder(self, layouts):
        found = defaultdict(set)
        for layout in layouts:
            folder, *above = re.split(r"/(?=p\d=)", self.folder(layout["base"]))
            partitions = {(*map(_value, above), *p) for p in layout["partitions"]}
            found[folder] |= partitions
        return {folder: partitions for folder, partitions in found.items() if partitions}

    def folder(self, uri):
        return ("/" + uri.removeprefix("file:").lstrip("/")).removeprefix(f"{self._root}/")

    def hows(self):
        return {w["how"] for w in self.writes}

    def modes(self, folder):
        return [w["mode"] for w in self.writes if self.folder(w["path"]) == folder]


def _value(folder):
    value = unquote(folder.partition("=")[2])
    return None if value == "__HIVE_DEFAULT_PARTITION__" else value


def truth_of_writes(times, key):
    found = {
        folder: {tuple(p) for p in truth.get(key, ())} for folder, truth in times["writes"].items()
    }
    return {folder: partitions for folder, partitions in found.items() if partitions}


def compared(plan, operation, times, observed, model):
    """Give what is observed otherwise than it is: (what, truth, observed)."""
    expected: dict[str, set] = {}
    if operation["what"] == "read":
        expected[folder_of(plan)] = as_texts(model.selected(operation))
        if "folder" in operation:
            inside = times["inside"]
            expected[folder_of(plan)] = set() if inside is None else model.inside(inside)
        tags = operation.get("tags")
        if tags is not None:
            expected[f"dimensions/{plan['name']}"] = {()}
    else:
        steps = operation["steps"]
        for step in steps if operation.get("same", True) else steps[:1]:
            model.write(step)
    expected = {folder: partitions for folder, partitions in expected.items() if partitions}
    yield "reads", expected, observed.reads
    yield "writes", truth_of_writes(times, "written"), observed.written
    if plan["kind"] in ("delta", "iceberg"):
        yield "removed", truth_of_writes(times, "removed"), observed.removed
    yield "ways of knowing", observed.hows() & {"exact", "listing"}, observed.hows()
    if operation["what"] == "write" and plan["kind"] in ("files", "table"):
        modes = [step["mode"].split(" ")[0] for step in operation["steps"]]
        if "recreate" not in modes:
            yield "modes", modes, observed.modes(folder_of(plan))


# --------------------------------------------------------------------------------------------------


class Run:
    """A batch of lakes that one application went through."""

    def __init__(self, chosen, work):
        self.records = _lines(work / "observations.ndjson")
        self.plans = chosen
        self.failures = []
        self.compared = 0
        noted = _lines(work / "truth.ndjson")
        times = {(m["lake"], m["operation"]): m for m in noted if "operation" in m}
        images = {m["lake"]: m["images"] for m in noted if "images" in m}
        for number, plan in enumerate(chosen):
            model = Model(plan, images.get(number))
            for position, operation in enumerate(plan["operations"]):
                now = times[number, position]
                observed = Observed(self.records, str(work / "lake"), now)
                for what, truth, seen in compared(plan, operation, now, observed, model):
                    self.compared += 1
                    if truth != seen:
                        self.failures.append((plan, position, what, truth, seen))

    def report(self):
        """Describe what failed: the operation, the truth, what was observed, and the full plan."""
        report = []
        for plan, position, what, truth, seen in self.failures:
            report += [
                f"{plan['name']} ({plan['kind']}, {plan['types']}) #{position}: {what}",
                f"  operation {json.dumps(plan['operations'][position], ensure_ascii=False)}",
                f"  truth     {truth}",
                f"  observed  {seen}",
            ]
        for plan in {p["name"]: p for p, *_ in self.failures}.values():
            report.append(f"{plan['name']}: {plan}")
        return "\n".join(report)


def _lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def submitted(spark, chosen, work, connectors):
    (work / "plan.json").write_text(json.dumps(chosen))
    application = record_events.APPLICATIONS / "random_lake.py"
    submissions.submit(spark, application, work, connectors=connectors)
    return Run(chosen, work)


@pytest.fixture(scope="module")
def files_run(spark, tmp_path_factory):
    """Run the lakes of files, by path and in the catalog."""
    return list(batches(spark, ("files", "table"), tmp_path_factory, ()))


@pytest.fixture(scope="module")
def connectors_run(spark, prepared, tmp_path_factory):
    """Run the lakes of Delta and Iceberg, of which this Spark may have one only."""
    kinds = submissions.available(spark)
    if not kinds:
        pytest.skip(f"no release of Delta or Iceberg for Spark {spark.line}")
    return list(batches(spark, kinds, tmp_path_factory, kinds))


def batches(spark, kinds, tmp_path_factory, connectors):
    chosen = plans(kinds)
    for start in range(0, len(chosen), BATCH):
        work = tmp_path_factory.mktemp("random")
        yield submitted(spark, chosen[start : start + BATCH], work, connectors)


@pytest.fixture(params=["files_run", "connectors_run"])
def runs(request):
    return request.getfixturevalue(request.param)


def test_what_is_observed_is_what_is_true(runs):
    assert sum(run.compared for run in runs) > 100
    failures = "\n".join(run.report() for run in runs)
    assert not failures, failures


def test_every_kind_of_operation_was_tried(runs):
    operations = [(p["kind"], o) for run in runs for p in run.plans for o in p["operations"]]
    kinds = {kind for kind, _ in operations}
    tried = {(k, s["mode"]) for k, o in operations for s in o.get("steps", ())}
    assert {(kind, mode) for kind in kinds for mode in MODES[kind]} <= tried
    of_reads = [o for _, o in operations if o["what"] == "read"]
    tried_filters = {c["kind"] for o in of_reads for f in o["filters"] for c in f}
    assert tried_filters == {"eq", "in", "range", "not", "null", "not null"}
    assert {"threads", "read", "write"} == {o["what"] for _, o in operations}
    assert any("tags" in o for o in of_reads)
    assert any("copy_to" in o for o in of_reads)
    transforms = {t.partition("(")[0] for run in runs for p in run.plans for t in p["transforms"]}
    if "delta" in kinds:
        assert {p["mapped"] for run in runs for p in run.plans if p["kind"] == "delta"} == {
            True,
            False,
        }
    if "iceberg" in kinds:
        assert transforms == {"", "bucket", "days", "truncate"}
    if "files" in kinds:
        assert {o["base_path"] for o in of_reads if "folder" in o} == {True, False}


def test_nothing_failed_inside_the_observer(runs):
    for run in runs:
        assert [r for r in run.records if {"error", "errors", "cut"} & r.keys()] == []
        assert run.records[-1]["kind"] == "end"
