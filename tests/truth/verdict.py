"""What the event of a run reports, compared with what is true."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.truth import columns
from tests.truth.known import DIFFERENCES, TRUE_OF_ALL
from tests.truth.planting import PARTITIONED_BY
from tests.truth.reported import Accessed, Reported, Table
from tests.truth.values import Files, Values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from tests.truth.queries import Query
    from tests.truth.running import Run
    from tests.truth.values import Partition


@dataclass
class Verdict:
    """How much of what a run's event reports is right, and what is not."""

    kind: str
    right: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    false_outputs: int = 0
    unknowns: int = 0
    wrong: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong

    def judge(self, what: str, problem: str | None) -> None:
        """Count one thing that was asked for."""
        self.asked[what] += 1
        self.right[what] += not problem
        if problem:
            self.wrong.append(problem)

    def __str__(self) -> str:
        figures = [
            f"{self.right[what]} of {self.asked[what]} {what}"
            for what in ("inputs", "partition sets", "row counts", "columns")
        ]
        figures.append(f"{self.false_outputs} false outputs")
        figures.append(f"{self.unknowns} unknowns without reason")
        return f"{self.kind}: {', '.join(figures)}"

    def as_dict(self) -> dict[str, Any]:
        """Give it for ``truth.json``."""
        return {
            "right": dict(self.right),
            "asked": dict(self.asked),
            "false_outputs": self.false_outputs,
            "unknowns_without_reason": self.unknowns,
            "wrong": self.wrong,
            "known_differences": self.differences,
        }


def verdict(run: Run, queries: Sequence[Query]) -> Verdict:
    """Compare all that the event of a run reports with what is true."""
    found, reported = Verdict(run.kind), Reported(run.event)
    values = Values(run.lake / "planted", run.kind)
    schema = {table: values.columns(table) for table in PARTITIONED_BY}
    for (home, table), readers in _readers(run, queries).items():
        _read(found, run, reported, (home, table), readers, values)
    for query in queries:
        _written(found, run, reported, query)
        _columns(found, run.kind, reported, query, schema)
    _nothing_else(found, run, reported, queries)
    _unknowns(found, reported, queries, schema)
    found.wrong += [f"{run.kind}: {partition} is lost" for partition in run.lost]
    return found


def _readers(run: Run, queries: Sequence[Query]) -> Mapping[Table, list[Query]]:
    """Give the queries that name each table."""
    readers: dict[Table, list[Query]] = defaultdict(list)
    for query in queries:
        for table in query.tables:
            readers[run.home(query), table].append(query)
    return readers


def _read(
    found: Verdict,
    run: Run,
    reported: Reported,
    table: Table,
    readers: Sequence[Query],
    values: Values,
) -> None:
    home, name = table
    at = f"{run.kind} {home}: {name}"
    accessed = reported.inputs.get(table)
    found.judge("inputs", None if accessed else f"{at} is no input")
    if not PARTITIONED_BY[name]:
        return
    may = {p for query in readers for p in values.may(query, name)}
    must = {p for query in readers for p in values.must(query, name)}
    opened = _opened(run, home, name)
    if opened is not None and (odd := _bounds(opened, may, must)):
        found.wrong.append(f"{at}: the oracles disagree, opened {odd}")
    problem: str | None = "nothing is reported"
    if accessed is not None:
        partitions = values.all(name) if accessed.how == "all" else accessed.partitions
        if accessed.rows:  # they may be of fewer partitions than the files that were opened
            partitions = values.all(name, accessed.rows)
            problem = _bounds(partitions, may if opened is None else opened, must)
        else:
            problem = _compared(accessed, partitions, opened)
            problem = problem or _bounds(partitions or set(), may, must)
    found.judge("partition sets", problem and f"{at}: {problem}")


def _opened(run: Run, home: str, table: str) -> set[Partition] | None:
    if run.files is None:
        return None
    folder = run.lake / ("iceberg" if run.kind == "iceberg" else "") / home / table
    files = Files(folder, run.kind)
    inside = {f for opened in run.files.values() for f in opened if f.is_relative_to(folder)}
    return {partition for file in inside if (partition := files.partition(file)) is not None}


def _compared(
    accessed: Accessed, partitions: set[Partition] | None, true: AbstractSet[Partition] | None
) -> str | None:
    if partitions is None:
        return f"reported is {accessed.how}, and true is {_texts(true)}"
    if true is None or partitions == true:
        return None
    how = "all of it is reported, " if accessed.how == "all" else ""
    return f"{how}too many {_texts(partitions - true)}, missing {_texts(true - partitions)}"


def _bounds(
    partitions: set[Partition], may: AbstractSet[Partition], must: AbstractSet[Partition]
) -> str | None:
    if partitions - may:
        return f"what cannot matter: {_texts(partitions - may)}"
    return f"not what matters: {_texts(must - partitions)}" if must - partitions else None


def _written(found: Verdict, run: Run, reported: Reported, query: Query) -> None:
    at = f"{run.kind} {query.name}: the output"
    accessed = reported.outputs.get(("out", query.name))
    if accessed is None:
        found.wrong.append(f"{at} is missing")
    candidates = ("out", "warehouse/out.db", "iceberg/out")
    [folder] = [f for c in candidates if (f := run.lake / c / query.name).is_dir()]
    counts = Files(folder, run.kind).counts()
    if accessed is not None:
        found.judge(
            "row counts", _counted(at, accessed, counts, has_partitions=bool(query.partitioned_by))
        )
    if not query.partitioned_by:
        return
    true = Files(folder, run.kind).partitions()
    problem: str | None = "nothing is reported"
    if accessed is not None:
        partitions = true if accessed.how == "all" else accessed.partitions
        problem = _compared(accessed, partitions, true)
    found.judge("partition sets", problem and f"{at}: {problem}")


def _counted(
    at: str,
    accessed: Accessed,
    true: Mapping[Partition, tuple[int, int]],
    *,
    has_partitions: bool,
) -> str | None:
    """Compare the rows and bytes of partitions, and their sums, with those of the files."""
    sums = tuple(map(sum, zip(*true.values(), strict=True))) if true else (0, 0)
    if accessed.statistics != sums:
        return f"{at}: reported are {accessed.statistics} rows and bytes, and true are {sums}"
    if has_partitions and accessed.counts != true:
        odd = {p for p in {*accessed.counts, *true} if accessed.counts.get(p) != true.get(p)}
        of = [(p, accessed.counts.get(p), true.get(p)) for p in sorted(odd, key=str)[:3]]
        return f"{at}: rows and bytes of {len(odd)} partitions are not true: {of}"
    return None


def _columns(
    found: Verdict, kind: str, reported: Reported, query: Query, schema: Mapping[str, list[str]]
) -> None:
    known = reported.columns.get(("out", query.name), {})
    for column, true in columns.sources(query.sql, schema).items():
        sources = known.get(column, frozenset())
        problem = None
        if sources != true:
            more, less = sorted(sources - true), sorted(true - sources)
            problem = f"{kind} {query.name}: {column}: too many {more}, missing {less}"
            difference = DIFFERENCES.get((query.name, column))
            if difference is not None and sources == difference.sources:
                found.differences.append(f"{problem}: {difference.reason}")
                problem = None
        found.judge("columns", problem)


def _nothing_else(found: Verdict, run: Run, reported: Reported, queries: Sequence[Query]) -> None:
    outputs = {("out", query.name) for query in queries}
    # A MERGE reads its target, of which nothing is there yet.
    empty = {
        name for name in outputs & reported.inputs.keys() if reported.inputs[name].how == "none"
    }
    for table in sorted(reported.inputs.keys() - _readers(run, queries).keys() - empty):
        found.wrong.append(f"{found.kind}: {'/'.join(table)} is an input, and no query names it")
    for table in sorted(reported.outputs.keys() - outputs):
        found.false_outputs += 1
        found.wrong.append(f"{found.kind}: {'/'.join(table)} is an output that no query wrote")


def _unknowns(
    found: Verdict,
    reported: Reported,
    queries: Sequence[Query],
    schema: Mapping[str, list[str]],
) -> None:
    made_of_nothing = {
        (query.name, column)
        for query in queries
        for column, sources in columns.sources(query.sql, schema).items()
        if not sources
    }
    for degradation in reported.degradations:
        name = degradation.get("dataset", {}).get("name", "").rpartition("/")[2]
        if (name, degradation.get("column")) in made_of_nothing:
            is_true = degradation["message"].endswith("it is a count of rows.")
        else:
            is_true = degradation["code"] in TRUE_OF_ALL
        if not is_true:
            found.unknowns += 1
            found.wrong.append(f"{found.kind}: {degradation['code']}: {degradation['message']}")


def _texts(partitions: AbstractSet[Partition] | None) -> str:
    if partitions is None:
        return "not known"
    texts = sorted("/".join("null" if v is None else repr(v) for v in p) for p in partitions)
    more = f" … {len(texts)} in all" if len(texts) > 6 else ""
    return f"[{', '.join(texts[:6])}{more}]"
