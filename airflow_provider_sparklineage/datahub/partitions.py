"""The part of a dataset that a run read or wrote, and what is known of that part.

In go facets of the datasets and those of the run, put together as an :class:`Access` of each
dataset; out come the aspects with a time that DataHub keeps of a partition: ``operation`` and
``datasetProfile``.
"""

from __future__ import annotations

import re
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.proposals import Json, Proposal, number_text, plain
from airflow_provider_sparklineage.event.model import (
    CAPTURE_KEY,
    CHECK_KEY,
    DESCRIPTION_KEY,
    LIFECYCLE_KEY,
    PARTITIONS_KEY,
    SUBSET_KEY,
)
from airflow_provider_sparklineage.model.credentials import scrub_name
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.subset import (
    Binary,
    Compare,
    Comparison,
    Condition,
    Locations,
    Operator,
    Partitions,
    to_text,
)
from airflow_provider_sparklineage.model.terms import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from airflow_provider_sparklineage.datahub.subject import Dataset, Subject


# The facet ``subset`` was made of a condition of the model, and is read as one.

_Kind = TypeVar("_Kind", bound=StrEnum)
_MAX_DEPTH = 50
"""Operators below each other: what is deeper was made to be deep."""


def read_condition(document: Any, depth: int = 0) -> Condition | None:
    """Read a condition of OpenLineage's ``BaseSubsetDatasetFacet``.

    :return: None for what is none, or has a part that is none: half of a condition is another one
    """
    found = lenient.mapping(document)
    match found.get("type"):
        case "partition":
            return Partitions(
                frozenset(map(_read_partition, lenient.items(found.get("partitions"))))
            )
        case "location":
            return Locations(frozenset(lenient.texts(found.get("locations"))))
        case "compare":
            return _read_compare(found)
        case "binary" if depth < _MAX_DEPTH:
            return _read_binary(found, depth)
        case _:
            return None


def _read_partition(document: dict[str, Any]) -> Partition:
    values = lenient.mapping(document.get("dimensions"))
    return Partition.of((lenient.text(k), _literal_text(v)) for k, v in values.items())


def _read_compare(found: dict[str, Any]) -> Condition | None:
    comparison = _member(Comparison, found.get("comparison"))
    if comparison is None:
        return None
    left, right = found.get("left"), found.get("right")
    if lenient.at(left, "type") == "literal":
        left, right, comparison = right, left, comparison.flipped
    field, value = lenient.at(left, "field"), _literal_text(lenient.at(right, "value"))
    if not isinstance(field, str) or value is None:
        return None
    return Compare(lenient.text(field), comparison, value)


def _literal_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None else lenient.text(value)
    return number_text(value) if isinstance(value, int | float) else lenient.text(str(value))


def _read_binary(found: dict[str, Any], depth: int) -> Condition | None:
    left, right = (read_condition(found.get(side), depth + 1) for side in ("left", "right"))
    operator = _member(Operator, found.get("operator"))
    if left is None or right is None or operator is None:
        return None
    return Binary(operator, left, right)


def _member(kinds: type[_Kind], value: Any) -> _Kind | None:
    try:
        return kinds(value)
    except ValueError:
        return None


MAX_PARTITIONS = 100
"""Partitions of one access that are named one by one; more are a range in one."""
MAX_NAMES = 10_000
"""Partitions of one access that are looked at; this package's events list fewer."""
FULL_TABLE = "FULL_TABLE_SNAPSHOT"
"""DataHub's name for all of a dataset: its pages ask for profiles and operations by it."""
MAX_TEMPLATES = 10
"""Templates that expected partitions come from, in one property."""
_WITNESSED = ("listener", "observer", "both")


class Part(NamedTuple):
    """A part of a dataset, as DataHub's ``PartitionSpec``.

    :param type: ``PARTITION``, ``QUERY`` for what is described by other means, ``FULL_TABLE``
    """

    partition: str
    type: str

    def spec(self) -> dict[str, str]:
        """Give it as JSON, without ``timePartition``: GMS refuses a spec that has both."""
        return {"partition": self.partition, "type": self.type}


WHOLE = Part(FULL_TABLE, "FULL_TABLE")
"""All of a dataset, or nobody knows which part: that is what it is for DataHub's connectors too."""


class Access(NamedTuple):
    """A dataset that a run read or wrote, with what the run's own facets have of it.

    :param seen: of ``sparkLineage_capture``: who saw it; empty of other producers
    :param check: of ``sparkLineage_partitionCheck``: what was expected; empty if nothing was
    :param is_of_this_run: whether this run did it, as far as the event can tell
    """

    dataset: Dataset
    side: Side
    seen: Mapping[str, Any]
    check: Mapping[str, Any]
    is_of_this_run: bool

    @property
    def facets(self) -> Json:
        """Give the facets of this access."""
        return self.dataset.of_side("inputFacets" if self.side is Side.READ else "outputFacets")

    @property
    def statistics(self) -> Mapping[str, Any]:
        """Give ``rowCount``, ``size`` and ``fileCount``, as far as they are known."""
        return lenient.mapping(
            self.facets.get("inputStatistics" if self.side is Side.READ else "outputStatistics")
        )

    @property
    def lifecycle(self) -> str:
        """Give what happened to the dataset: CREATE, OVERWRITE, TRUNCATE, …; empty if unknown."""
        return lenient.text(lenient.at(self.dataset.facets, LIFECYCLE_KEY, LIFECYCLE_KEY))

    @property
    def named(self) -> tuple[str, ...]:
        """Give the partitions that were accessed, as far as the event names them."""
        found = self._condition
        if lenient.at(found, "type") == "location":
            return tuple(map(scrub_name, lenient.texts(_first_values(found, "locations"))))
        if lenient.at(found, "type") != "partition":
            return ()
        partitions = lenient.items(_first_values(found, "partitions"))
        names = (lenient.text(p.get("identifier")) or _partition_name(p) for p in partitions)
        return tuple(map(scrub_name, filter(None, names)))

    @property
    def condition(self) -> str:
        """Describe in words which rows were accessed, where it is no matter of partitions only."""
        is_of_partitions = lenient.at(self._condition, "type") == "partition"
        found = None if is_of_partitions else read_condition(self._condition)
        words = lenient.text(lenient.at(self.facets, DESCRIPTION_KEY, "description"))
        texts = [] if found is None else [to_text(found)]
        return plain(" AND ".join([*texts, *([words] if words else [])]))

    @property
    def summary(self) -> str:
        """Say in a few words what was accessed; empty if nothing is known of it."""
        if self.is_counted:
            return plain(lenient.at(self.dataset.facets, PARTITIONS_KEY, "summary"))
        if lenient.at(self.check, "observed", "count"):
            return plain(lenient.at(self.check, "observed", "summary"))
        return _listed_names(self.named) or self.condition or self._words

    @property
    def is_counted(self) -> bool:
        """Whether the dataset's own facet has which of its partitions were written."""
        count = lenient.number(lenient.at(self.dataset.facets, PARTITIONS_KEY, "count"))
        return self.side is Side.WRITE and bool(count)

    def parts(self, most: int = MAX_PARTITIONS) -> list[Part]:
        """Give the parts that were accessed: each partition; of too many, a range in one.

        :param most: partitions that may be named one by one
        """
        if self.seen.get("accessed") == "none":
            return []
        names = dict.fromkeys(self.named)
        if names and len(names) <= most:
            return [Part(name, "PARTITION") for name in names]
        is_part = names or self.condition or self.is_counted or self.seen.get("accessed") == "part"
        return [Part(self.summary, "QUERY") if is_part and self.summary else WHOLE]

    @property
    def _words(self) -> str:
        accessed = lenient.text(self.seen.get("accessed"))
        if accessed == "all" and self.side is Side.WRITE:
            return "unpartitioned"  # there may have been rows before
        return _WORDS.get(accessed, "")

    @property
    def _condition(self) -> Any:
        key = "inputCondition" if self.side is Side.READ else "outputCondition"
        return lenient.at(self.facets, SUBSET_KEY, key)


_WORDS = {"all": "all of it", "part": "a part of it", "none": "nothing of it"}


def _first_values(found: Any, key: str) -> list[Any]:
    values = lenient.at(found, key)
    return values[: MAX_NAMES + 1] if isinstance(values, list) else []


def _partition_name(partition: dict[str, Any]) -> str:
    found = read_condition({"type": "partition", "partitions": [partition]})
    return str(next(iter(found.partitions))) if isinstance(found, Partitions) else ""


def _listed_names(names: tuple[str, ...]) -> str:
    if len(names) <= MAX_PARTITIONS and len(text := ", ".join(names)) <= lenient.MAX_TEXT:
        return text
    count = f"more than {MAX_NAMES:,}" if len(names) > MAX_NAMES else len(names)
    return lenient.text(f"{min(names)} … {max(names)} ({count} partitions)")


def accesses(subject: Subject, side: Side) -> Iterator[Access]:
    """Give what the run read or wrote; twice what the event has by its path and as a table."""
    capture = lenient.mapping(subject.run_facets.get(CAPTURE_KEY))
    check = lenient.mapping(subject.run_facets.get(CHECK_KEY))
    seen = _by_dataset(e for e in lenient.items(capture.get("datasets")) if e.get("side") == side)
    checked = _by_dataset(lenient.items(check.get(f"{side}s")))
    is_listed = bool(capture) and "datasetCounts" not in capture
    for dataset in subject.inputs if side is Side.READ else subject.outputs:
        entry = seen.get(dataset.name, {})
        is_known = bool(entry) or is_listed
        was = _is_witnessed(entry) if is_known else subject.state == "COMPLETE"
        yield Access(dataset, side, entry, checked.get(dataset.name, {}), was)


def expectation(access: Access) -> dict[str, str]:
    """Say what was expected of an access and how that compares; nothing if nothing was."""
    status = lenient.text(access.check.get("status"))
    if status in ("", "undeclared"):
        return {}
    parts = ("expected", "missing", "unexpected")
    found = {part: plain(lenient.at(access.check, part, "summary")) for part in parts}
    sources = [
        f"{lenient.text(source.get('field'))}: {lenient.text(source.get('template'))}"
        for source in lenient.items(access.check.get("from"))
    ]
    listed = plain("; ".join(dict.fromkeys(sources[:MAX_TEMPLATES])))
    return {"check": status, **found, "expected from": listed}


def _is_witnessed(entry: Mapping[str, Any]) -> bool:
    return entry.get("witness") in _WITNESSED and not entry.get("failed")


def _by_dataset(entries: Iterable[dict[str, Any]]) -> dict[tuple[Any, Any], Mapping[str, Any]]:
    """Find entries by namespace and name, as :attr:`.event.model.Event.accesses` does of ours."""
    found: dict[tuple[Any, Any], Mapping[str, Any]] = {}
    for entry in entries:
        name = lenient.at(entry, "dataset", "namespace"), lenient.at(entry, "dataset", "name")
        if all(isinstance(one, str) for one in name):
            found[name] = entry
    return found


# ``operation``: one for each partition that was written. GMS stores an operation below its time,
# dataset, ``messageId`` and partition (``TimeseriesAspectTransformer.getDocId``): the run's id
# makes two runs of one millisecond two, and an event that is sent again the same.
#
# =========================================  =====================================================
# the statement, where the event has one     ``INSERT``, ``UPDATE``, ``DELETE``, ``CREATE`` …;
#                                            MERGE is ``UPDATE``, TRUNCATE ``DELETE``, COPY
#                                            ``INSERT``
# ``lifecycleStateChange``                   ``CREATE``, ``DROP``, ``ALTER``; OVERWRITE is
#                                            ``INSERT``, RENAME ``ALTER``, TRUNCATE ``DELETE``
# neither, and rows or files were written    ``INSERT``
# nothing of it                              ``UNKNOWN``
# =========================================  =====================================================
#
# They are the types by which DataHub's connectors for Databricks, Snowflake and BigQuery name these
# statements; an overwrite is an ``INSERT`` there too, and here says so in a custom property.

MAX_OPERATIONS = 1000
"""Operations of one run, shared out to its outputs: each is one more thing to be sent in time."""
_TYPES_BY_STATEMENT = {
    "INSERT": "INSERT",
    "COPY": "INSERT",
    "UPDATE": "UPDATE",
    "MERGE": "UPDATE",
    "DELETE": "DELETE",
    "TRUNCATE": "DELETE",
    "CREATE": "CREATE",
    "REPLACE": "CREATE",
    "ALTER": "ALTER",
    "DROP": "DROP",
}
_TYPES_BY_LIFECYCLE = {
    "CREATE": "CREATE",
    "OVERWRITE": "INSERT",
    "TRUNCATE": "DELETE",
    "DROP": "DROP",
    "ALTER": "ALTER",
    "RENAME": "ALTER",
}
_SQL_COMMENT = re.compile(r"\s*(--[^\n]*\n|/\*.*?\*/)", re.DOTALL)
_SQL_WORD = re.compile(r"\s*([A-Za-z]+)\b")


def operations(subject: Subject) -> Iterator[Proposal]:
    """Give the operations of a run that has ended; none of a part of a task, which are the task's.

    Spark's own events of the jobs below a task come before the task's, which has all of them.
    """
    if not can_be_stamped(subject) or is_below_a_task(subject):
        return
    statement = _statement_type(subject)
    done: set[tuple[str, Part]] = set()
    most = min(MAX_PARTITIONS, MAX_OPERATIONS // max(1, len(subject.outputs)))
    for access in accesses(subject, Side.WRITE):
        parts = access.parts(most) if access.is_of_this_run else []
        for part in parts:
            if (access.dataset.urn, part) not in done:
                done.add((access.dataset.urn, part))
                aspect = _operation(subject, access, part, statement, is_all=len(parts) == 1)
                yield Proposal(access.dataset.urn, "operation", aspect)


def can_be_stamped(subject: Subject) -> bool:
    """Whether the event is the end of a run of a job, and has a time."""
    return subject.has_ended and subject.has_run and subject.has_job


def is_below_a_task(subject: Subject) -> bool:
    """Whether the event is Spark's own, of what a task of Airflow had it do."""
    engine = lenient.text(lenient.at(subject.run_facets, "processing_engine", "name"))
    return engine == "spark" and CAPTURE_KEY not in subject.run_facets


def stamped(subject: Subject, part: Part) -> Json:
    """Give what all aspects with a time have: when, of which part, and as whose message."""
    return {
        "timestampMillis": subject.time,
        "partitionSpec": part.spec(),
        "messageId": lenient.text(lenient.at(subject.event, "run", "runId")),
    }


def _operation(
    subject: Subject, access: Access, part: Part, statement: str, *, is_all: bool
) -> Json:
    """Describe an operation.

    :param is_all: whether it is all that the run wrote to the dataset: what rows are counted of
    """
    rows = lenient.number(access.statistics.get("rowCount"))
    properties = {
        "job": subject.job if subject.has_job else "",
        "run": subject.run if subject.has_run else "",
        "lifecycle": access.lifecycle,
    }
    if rows is not None and not is_all:
        properties["rows of all partitions"] = str(rows)
    return {
        **stamped(subject, part),
        "lastUpdatedTimestamp": subject.time,
        "operationType": statement or _operation_type(access),
        "sourceType": "DATA_PROCESS",
        "customProperties": {key: value for key, value in properties.items() if value},
        **({"numAffectedRows": rows} if rows is not None and is_all else {}),
    }


def _operation_type(access: Access) -> str:
    is_data = any(map(lenient.number, access.statistics.values()))
    return _TYPES_BY_LIFECYCLE.get(
        access.lifecycle, "INSERT" if is_data or access.seen else "UNKNOWN"
    )


def _statement_type(subject: Subject) -> str:
    """Give what the run's only statement does to its only output; empty where there are more."""
    query = lenient.at(subject.job_facets, "sql", "query")
    if not isinstance(query, str) or len(subject.outputs) != 1:
        return ""
    start = 0
    while comment := _SQL_COMMENT.match(query, start):
        start = comment.end()
    word = _SQL_WORD.match(query, start)
    is_single = ";" not in query.rstrip().rstrip(";")
    return _TYPES_BY_STATEMENT.get(word[1].upper(), "") if word and is_single else ""


# ``datasetProfile``: the rows of a partition, and the metrics that a task measured. A run counts
# the rows that it has *written*. That is the number of rows *there are* where one partition was
# replaced or made by one write; where rows were added, files rewritten by a command of Delta or
# Iceberg, or several partitions written, nobody knows it of any.
#
# A profile of all of a dataset is made of measured metrics only (the facet ``dataQualityMetrics``):
# DataHub's page shows the latest one and nothing of those before, so that one with a number of rows
# alone would hide the columns' statistics of a profiler. Unpartitioned outputs have their rows in
# the operation.

MAX_COLUMNS = 1000
"""Columns of one profile that have statistics."""
_REPLACING = ("CREATE", "OVERWRITE")
_METRICS_KEY = "dataQualityMetrics"
_TABLE_FORMATS = ("delta", "hudi", "iceberg")


def profiles(subject: Subject) -> Iterator[Proposal]:
    """Give the profiles of a run that has ended, one of each partition or dataset."""
    if not can_be_stamped(subject) or is_below_a_task(subject):
        return
    read = list(accesses(subject, Side.READ))
    of_reads = {access.dataset.urn for access in read}
    found: dict[tuple[str, Part], Json] = {}
    for access in accesses(subject, Side.WRITE):
        if access.dataset.urn not in of_reads and (counts := _replaced_rows(subject, access)):
            found[access.dataset.urn, access.parts()[0]] = counts
    for access in (*read, *accesses(subject, Side.WRITE)):
        if (parts := access.parts()) and (measured := _measured_metrics(subject, access)):
            found[access.dataset.urn, parts[0]] = measured
    for (urn, part), profile in found.items():
        yield Proposal(urn, "datasetProfile", {**stamped(subject, part), **profile})


def _replaced_rows(subject: Subject, access: Access) -> Json:
    """Give the rows of the only partition that a run replaced; nothing if that is not known."""
    rows = lenient.number(access.statistics.get("rowCount"))
    is_claimed = subject.state == "COMPLETE" and access.is_of_this_run
    parts = access.parts() if is_claimed and rows is not None and _is_replaced(access) else []
    if len(parts) != 1 or parts[0].type != "PARTITION":
        return {}
    return {"rowCount": rows, **_size_in_bytes(access.statistics.get("size"))}


def _is_replaced(access: Access) -> bool:
    layer = lenient.text(lenient.at(access.dataset.facets, "storage", "storageLayer")).lower()
    is_rewritten = access.lifecycle != "CREATE" and layer in _TABLE_FORMATS
    return access.lifecycle in _REPLACING and "writes" not in access.seen and not is_rewritten


def _measured_metrics(subject: Subject, access: Access) -> Json:
    """Give what a task measured of a dataset: rows, and statistics of its columns."""
    facet = access.facets.get(_METRICS_KEY) or access.dataset.facets.get(_METRICS_KEY)
    rows = lenient.number(lenient.at(facet, "rowCount"))
    of_columns = lenient.mapping(lenient.at(facet, "columnMetrics"))
    columns = [
        {"fieldPath": subject.path(access.dataset.name, name), **_statistics(metrics, rows)}
        for name, metrics in islice(of_columns.items(), MAX_COLUMNS)
        if isinstance(metrics, dict)
    ]
    return {
        **({"rowCount": rows} if rows is not None else {}),
        **_size_in_bytes(lenient.at(facet, "bytes")),
        **({"fieldProfiles": columns} if columns else {}),
    }


def _size_in_bytes(size: Any) -> Json:
    found = lenient.number(size)
    return {"sizeInBytes": found} if found else {}


def _statistics(metrics: dict[str, Any], rows: int | None) -> Json:
    """Give a column's statistics; DataHub has values as texts, whatever type the column has."""
    quantiles = {
        lenient.text(quantile, 20): _metric_text(value)
        for quantile, value in islice(lenient.mapping(metrics.get("quantiles")).items(), 100)
    }
    found = {
        **_count_and_share("nullCount", "nullProportion", metrics.get("nullCount"), rows),
        **_count_and_share("uniqueCount", "uniqueProportion", metrics.get("distinctCount"), rows),
        "min": _metric_text(metrics.get("min")),
        "max": _metric_text(metrics.get("max")),
        "median": quantiles.get("0.5"),
        "quantiles": [{"quantile": q, "value": value} for q, value in quantiles.items() if value],
    }
    return {key: value for key, value in found.items() if value not in (None, "", [])}


def _count_and_share(count_key: str, share_key: str, count: Any, rows: int | None) -> Json:
    found = lenient.number(count)
    if found is None:
        return {}
    return {count_key: found, **({share_key: found / rows} if rows and found <= rows else {})}


def _metric_text(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return lenient.text(number_text(value) if is_number else value, 200)
