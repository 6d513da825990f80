"""Describe the part of a dataset that a run read or wrote, with the part's rows, size, statistics.

The input is the facets of the datasets and of the run, from which an :class:`Access` is made for
each dataset. The output is DataHub's time-series aspects of a partition: ``operation`` and
``datasetProfile``.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from airflow_provider_sparklineage.datahub.proposals import (
    MAX_TEXT,
    Json,
    Proposal,
    number_text,
    plain,
    stored,
)
from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.model import subset as conditions
from airflow_provider_sparklineage.model import terms
from airflow_provider_sparklineage.model.credentials import scrub_name
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.terms import Frozen, Side, extent_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.datahub.subject import Dataset, Subject


# The functions below read the facet ``subset``, and make the condition (``model/subset.py``) from
# which the facet was made.

_Json = TypeVar("_Json")
_MAX_DEPTH = 50
"""The most levels of nested operators; no ordinary query has a deeper condition."""


def read_condition(facet: model.Condition | None, depth: int = 0) -> conditions.Condition | None:
    """Read a condition of OpenLineage's ``BaseSubsetDatasetFacet``.

    :param depth: the number of operators around the condition
    :return: None if the facet, or any part of it, is not a condition: half of a condition would be
        a different condition
    """
    if facet is None:
        return None
    match facet.type:
        case "partition":
            return conditions.Partitions(frozenset(map(_partition, facet.partitions or ())))
        case "location":
            return conditions.Locations(frozenset(map(stored, filter(None, facet.locations or ()))))
        case "compare":
            return _read_compare(facet)
        case "binary" if depth < _MAX_DEPTH:
            return _read_binary(facet, depth)
        case _:
            return None


def _partition(named: model.NamedPartition) -> Partition:
    values = (named.dimensions or {}).items()
    return Partition.from_values((stored(key), _literal_text(value)) for key, value in values)


def _read_compare(facet: model.Condition) -> conditions.Condition | None:
    left, right = facet.left, facet.right
    comparison = conditions.Comparison.__members__.get(facet.comparison or "")
    if comparison is None or left is None or right is None:
        return None
    if left.type == "literal":
        left, right, comparison = right, left, comparison.flipped
    value = _literal_text(right.value)
    if left.field is None or value is None:
        return None
    return conditions.Compare(stored(left.field), comparison, value)


def _literal_text(value: model.Value) -> str | None:
    if value is None:
        return None
    return stored(value) if isinstance(value, str) else number_text(value)


def _read_binary(facet: model.Condition, depth: int) -> conditions.Condition | None:
    left, right = (read_condition(side, depth + 1) for side in (facet.left, facet.right))
    operator = conditions.Operator.__members__.get(facet.operator or "")
    if left is None or right is None or operator is None:
        return None
    return conditions.Binary(operator, left, right)


MAX_PARTITIONS = 100
"""The most partitions of one access that are named one by one; more are named as one range."""
MAX_NAMES = 10_000
"""The most partitions of one access that are read; this package's events list fewer."""
MAX_TEMPLATES = 10
"""The most templates of expected partitions in one property."""
_WITNESSED = ("listener", "observer", "both")


class Part(NamedTuple):
    """A part of a dataset, as DataHub's ``PartitionSpec``.

    It has no ``timePartition``: GMS refuses a spec with ``partition`` and ``timePartition``.

    :param partition: the partition's name, or words that describe the part
    :param type: ``PARTITION`` for one partition, ``FULL_TABLE`` for a whole dataset, ``QUERY`` for
        any other part, also for one that is not known
    """

    partition: str
    type: str


WHOLE = Part("FULL_TABLE_SNAPSHOT", "FULL_TABLE")
"""A whole dataset. DataHub's pages ask for profiles by this name."""
NOT_KNOWN = Part(terms.NOT_KNOWN, "QUERY")
"""A part of which nothing is known; it may be all of the dataset.

DataHub takes a spec that is left out for that of a whole dataset, so an unknown part needs a name.
"""


class Access(Frozen, frozen=True, dict=True):
    """A dataset that a run read or wrote, with the dataset's entries in the run's own facets.

    :param side: whether the run read or wrote the dataset
    :param seen: the dataset's entry in ``sparkLineage_capture``, which names the reporter of the
        access (*witness*: listener, observer, both, or a declaration); None if the facet has no
        such entry
    :param check: the dataset's entry in ``sparkLineage_partitionCheck``, which has the expected
        partitions; None if none were expected
    :param is_of_this_run: whether this run accessed the dataset, as far as the event shows; an
        event may also have datasets of the last run
    """

    dataset: Dataset
    side: Side
    seen: model.Seen | None
    check: model.Checked | None
    is_of_this_run: bool

    def read_facet(self, key: str, of: type[_Json]) -> _Json:
        """Read a facet of this access; if the access lacks the facet, that of the dataset itself.

        :param key: the facet's key in the event
        :param of: the class of the result; if both facets are absent, the result is empty
        """
        own = self.dataset.of_side
        return model.read_facet(own if own.get(key) else self.dataset.facets, key, of)

    @property
    def statistics(self) -> model.Statistics:
        """Give ``rowCount``, ``size`` and ``fileCount``; a value that is not known is None."""
        of = self.dataset.side
        known = of.input_statistics if self.side is Side.READ else of.output_statistics
        return known or model.Statistics()

    @cached_property
    def named(self) -> tuple[str, ...]:
        """Give the partitions, or locations, that the run accessed; () if the event names none."""
        facet, most = self._condition, MAX_NAMES + 1
        names: Iterable[str] = ()
        if facet and facet.type == "location":
            names = map(stored, (facet.locations or [])[:most])
        elif facet and facet.type == "partition":
            partitions = (facet.partitions or [])[:most]
            names = (stored(one.identifier or "") or str(_partition(one)) for one in partitions)
        return tuple(map(scrub_name, filter(None, names)))

    @cached_property
    def figures(self) -> dict[Part, model.Figures]:
        """Give the rows and bytes of each partition that a write names; {} if none are known."""
        if self.side is Side.READ:
            return {}
        condition = self._condition
        named = (condition and condition.partitions) or ()
        figures = self.dataset.partitions.figures(len(named))
        # ``named`` leaves out partitions without a name.
        if len(figures) != len(self.named):
            return {}
        return {Part(name, "PARTITION"): one for name, one in zip(self.named, figures, strict=True)}

    @cached_property
    def condition(self) -> str:
        """Describe in words the condition on the rows that were accessed.

        Empty if the event has no condition, or only a list of partitions.
        """
        facet, described = self._condition, self.dataset.side.described
        condition = None if facet and facet.type == "partition" else read_condition(facet)
        words = stored((described and described.description) or "")
        texts = [] if condition is None else [conditions.to_text(condition)]
        return plain(" AND ".join([*texts, *([words] if words else [])]))

    @cached_property
    def summary(self) -> str:
        """Describe the accessed part in a few words; empty if the event does not show it.

        It is empty for a write that only removed data.
        """
        if self._extent == "removed":
            return ""
        if self.is_counted:
            return plain(self.dataset.partitions.summary or "")
        if self.check and self.check.observed and self.check.observed.count:
            return plain(self.check.observed.summary or "")
        words = extent_text(self._extent, self.side)
        return _listed_names(self.named) or self.condition or words

    @property
    def is_counted(self) -> bool:
        """Whether ``sparkLineage_partitions`` has the number of partitions that were written."""
        return self.side is Side.WRITE and bool(self.dataset.partitions.count)

    def parts(self, most: int = MAX_PARTITIONS) -> list[Part]:
        """Give the parts that were accessed: each partition, or one part for all if they are many.

        :param most: the most partitions that are named one by one
        :return: only :data:`WHOLE` if the whole dataset was accessed; only :data:`NOT_KNOWN` if the
            event does not show which part was; [] if nothing was accessed
        """
        if self._extent in ("none", "removed"):
            return []
        names = dict.fromkeys(self.named)
        if names and len(names) <= most:
            return [Part(name, "PARTITION") for name in names]
        is_part = names or self.condition or self.is_counted or self._extent == "part"
        if is_part and self.summary:
            return [Part(self.summary, "QUERY")]
        return [WHOLE if self._is_whole else NOT_KNOWN]

    def removed(self, most: int = MAX_PARTITIONS) -> list[Part]:
        """Give the parts that a write emptied, in the form of :meth:`parts`."""
        if self.side is Side.READ:
            return []
        removed = self.dataset.partitions.removed
        if removed is None:
            return [WHOLE] if self._extent == "removed" else []
        named = (one.identifier or str(_partition(one)) for one in removed.partitions or ())
        names = dict.fromkeys(scrub_name(stored(name)) for name in named)
        if names and len(names) <= most:
            return [Part(name, "PARTITION") for name in names]
        return [Part(plain(removed.summary or ""), "QUERY")] if removed.summary else []

    @property
    def _is_whole(self) -> bool:
        is_of_tables = self.dataset.lifecycle in _OF_TABLES  # OVERWRITE may be of a partition
        return self._extent == "all" or (not self._extent and is_of_tables)

    @property
    def _extent(self) -> str:
        return (self.seen and self.seen.accessed) or ""

    @property
    def _condition(self) -> model.Condition | None:
        subset = self.dataset.side.subset or model.Subset()
        return subset.input if self.side is Side.READ else subset.output


_OF_TABLES = ("CREATE", "DROP")


def _listed_names(names: tuple[str, ...]) -> str:
    if len(names) <= MAX_PARTITIONS and len(text := ", ".join(names)) <= MAX_TEXT:
        return text
    count = f"more than {MAX_NAMES:,}" if len(names) > MAX_NAMES else len(names)
    return stored(f"{min(names)} … {max(names)} ({count} partitions)")


def accesses(subject: Subject, side: Side) -> Iterator[Access]:
    """Yield an access for each input of the event, or for each output.

    A dataset that the event has twice, by its path and as a table, gives two accesses.

    :param side: whether the accesses are reads or writes
    """
    capture = subject.capture
    seen = {one.dataset.dataset_name: one for one in capture.datasets or () if one.side == side}
    checked = {one.dataset.dataset_name: one for one in subject.check.of_side(side)}
    is_listed = capture != model.Capture() and capture.datasetCounts is None
    for dataset in subject.inputs if side is Side.READ else subject.outputs:
        entry = seen.get(dataset.name)
        is_witnessed = entry is not None and entry.witness in _WITNESSED and not entry.failed
        is_claimed = entry is None and not is_listed and subject.state == "COMPLETE"
        is_of_this_run = is_witnessed or is_claimed
        yield Access(dataset, side, entry, checked.get(dataset.name), is_of_this_run)


def expectation(access: Access) -> dict[str, str]:
    """Give the result of an access's check as properties; {} if no partitions were expected.

    :return: ``check`` is the status; ``expected``, ``missing`` and ``unexpected`` are partitions in
        words; ``expected from`` lists the templates. A value may be empty
    """
    check = access.check
    status = stored((check and check.status) or "")
    if check is None or status in ("", "undeclared"):
        return {}
    counted = {
        "expected": check.expected,
        "missing": check.missing,
        "unexpected": check.unexpected,
    }
    texts = {key: plain((one and one.summary) or "") for key, one in counted.items()}
    sources = [f"{stored(one.field)}: {stored(one.template)}" for one in check.sources or ()]
    listed = plain("; ".join(dict.fromkeys(sources[:MAX_TEMPLATES])))
    return {"check": status, **texts, "expected from": listed}


# A run has an ``operation`` for each partition that it wrote. GMS stores an operation by its time,
# dataset, ``messageId`` and partition (``TimeseriesAspectTransformer.getDocId``). The ``messageId``
# is the run's id, so that two runs of one millisecond have two operations, and an event that is
# sent again has the same operation. The type of an operation comes from the first row that applies:
#
# =========================================  =====================================================
# the statement, where the event has one     ``INSERT``, ``UPDATE``, ``DELETE``, ``CREATE`` …;
#                                            MERGE is ``UPDATE``, TRUNCATE ``DELETE``, COPY
#                                            ``INSERT``
# ``lifecycleStateChange``                   ``CREATE``, ``DROP``, ``ALTER``; OVERWRITE is
#                                            ``INSERT``, RENAME ``ALTER``, TRUNCATE ``DELETE``
# neither, and rows or files were written    ``INSERT``
# a partition was emptied                    ``DELETE``, whatever else the run did
# none of these                              ``UNKNOWN``
# =========================================  =====================================================
#
# DataHub's connectors for Databricks, Snowflake and BigQuery use the same types for these
# statements. An overwrite is an ``INSERT`` there too; here a custom property also says OVERWRITE.

MAX_OPERATIONS = 1000
"""The most operations of one run, divided among its outputs: more take too long to send."""
_TYPES_BY_STATEMENT = {
    **{name: name for name in ("INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP")},
    **{"COPY": "INSERT", "MERGE": "UPDATE", "TRUNCATE": "DELETE", "REPLACE": "CREATE"},
}
_TYPES_BY_LIFECYCLE = {
    **{name: name for name in ("CREATE", "ALTER", "DROP")},
    **{"OVERWRITE": "INSERT", "RENAME": "ALTER", "TRUNCATE": "DELETE"},
}
_SQL_COMMENT = re.compile(r"\s*(--[^\n]*\n|/\*.*?\*/)", re.DOTALL)
_SQL_WORD = re.compile(r"\s*([A-Za-z]+)\b")


def operations(subject: Subject) -> Iterator[Proposal]:
    """Yield the operations of the event's run, one for each written part (:meth:`Access.parts`).

    Nothing is yielded before the run has ended, nor for the events that Spark itself sends: the
    event of the task that ran Spark comes later, and has the operations of all its jobs.
    """
    if not can_be_stamped(subject) or is_below_a_task(subject):
        return
    statement = _statement_type(subject)
    done: set[tuple[str, Part]] = set()
    most = min(MAX_PARTITIONS, MAX_OPERATIONS // max(1, len(subject.outputs)))
    for access in accesses(subject, Side.WRITE):
        parts = access.parts(most) if access.is_of_this_run else []
        removed = access.removed(most) if access.is_of_this_run else []
        for part in (*parts, *removed):
            if (access.dataset.urn, part) not in done:
                done.add((access.dataset.urn, part))
                is_all = len(parts) == 1 and part in parts
                aspect = _operation(subject, access, part, statement, is_all=is_all)
                if part in removed:
                    aspect |= {"operationType": "DELETE"}
                yield Proposal(access.dataset.urn, "operation", aspect)


def can_be_stamped(subject: Subject) -> bool:
    """Whether an event can have time-series aspects: it ends the run of a job, and has a time."""
    return subject.has_ended and subject.has_run and subject.has_job


def is_below_a_task(subject: Subject) -> bool:
    """Whether Spark itself, and not a task of Airflow, has sent the event."""
    engine = model.read_facet(subject.run_facets, "processing_engine", model.Engine)
    return engine.name == "spark" and model.CAPTURE_KEY not in subject.run_facets


def stamped(subject: Subject, part: Part) -> Json:
    """Give the fields that all time-series aspects have: time, part of the dataset, message id.

    :param part: the part of the dataset that the aspect is about
    """
    return {
        "timestampMillis": subject.time,
        "partitionSpec": part._asdict(),
        "messageId": stored(subject.event.run.runId),
    }


def _operation(
    subject: Subject, access: Access, part: Part, statement: str, *, is_all: bool
) -> Json:
    """Give the aspect ``operation`` for a write to one part of a dataset.

    :param subject: the event's entities with their URNs
    :param access: the write
    :param statement: the operation's type by the SQL statement; empty if that is not known
    :param is_all: whether the run wrote only this part of the dataset. If it wrote other parts
        too, the row count of the event is the sum for all of them, and not that of this part
    """
    rows = access.statistics.rowCount
    properties = {
        "job": subject.job if subject.has_job else "",
        "run": subject.run if subject.has_run else "",
        "lifecycle": access.dataset.lifecycle,
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
    written = access.statistics
    is_data = bool(written.rowCount or written.size or written.fileCount or access.seen)
    default = "INSERT" if is_data else "UNKNOWN"
    return _TYPES_BY_LIFECYCLE.get(access.dataset.lifecycle, default)


def _statement_type(subject: Subject) -> str:
    """Give the operation type of the SQL in the event; empty if the type is not known.

    The type is known only if the SQL is one statement, and the event has one output.
    """
    query = model.read_facet(subject.job_facets, "sql", model.Sql).query
    if len(subject.outputs) != 1:
        return ""
    start = 0
    while comment := _SQL_COMMENT.match(query, start):
        start = comment.end()
    word = _SQL_WORD.match(query, start)
    is_single = ";" not in query.rstrip().rstrip(";")
    return _TYPES_BY_STATEMENT.get(word[1].upper(), "") if word and is_single else ""


# A ``datasetProfile`` has the number of rows of a partition, and the metrics that a task measured.
# A run counts the rows that it has *written*. This count equals the number of rows that a partition
# *has* only if one write created or replaced that one partition. If rows were added, if a command
# of Delta or Iceberg rewrote files, or if several partitions were written, no partition's number of
# rows is known.
#
# A profile of a whole dataset is made of measured metrics only (the facet ``dataQualityMetrics``):
# DataHub's page shows only the latest profile, so that a profile with nothing but a number of rows
# would hide a profiler's statistics of columns. Unpartitioned outputs have their rows in the
# operation.

MAX_COLUMNS = 1000
"""The most columns with statistics in one profile."""
_REPLACING = ("CREATE", "OVERWRITE")
_TABLE_FORMATS = ("delta", "hudi", "iceberg")


def profiles(subject: Subject) -> Iterator[Proposal]:
    """Yield the profiles that the event's run gives, at most one for each partition or dataset.

    Nothing is yielded before the run has ended, nor for the events that Spark itself sends. If a
    task measured metrics of a part, the profile has these metrics, and not the row count of a
    write.
    """
    if not can_be_stamped(subject) or is_below_a_task(subject):
        return
    read = list(accesses(subject, Side.READ))
    of_reads = {access.dataset.urn for access in read}
    by_part: dict[tuple[str, Part], Json] = {}
    for access in accesses(subject, Side.WRITE):
        if access.dataset.urn not in of_reads:
            for part, counts in _replaced_rows(subject, access).items():
                by_part[access.dataset.urn, part] = counts
    for access in (*read, *accesses(subject, Side.WRITE)):
        if (parts := access.parts()) and (measured := _measured_metrics(subject, access)):
            by_part[access.dataset.urn, _measured_part(access, parts)] = measured
    for (urn, part), profile in by_part.items():
        yield Proposal(urn, "datasetProfile", {**stamped(subject, part), **profile})


def _replaced_rows(subject: Subject, access: Access) -> dict[Part, Json]:
    """Give the row count and size of each partition that a run replaced.

    :param access: the write
    :return: ``rowCount``, and ``sizeInBytes`` if that is known, of each partition whose rows are
        known; {} if the run did not replace the partitions as a whole
    """
    if subject.state != "COMPLETE" or not access.is_of_this_run or not _is_replaced(access):
        return {}
    parts = access.parts()
    if not parts or parts[0].type != "PARTITION":
        return {}
    counted = access.figures
    if not counted and len(parts) == 1:
        counted = {parts[0]: model.Figures(access.statistics.rowCount, access.statistics.size)}
    return {
        part: {"rowCount": counted[part].rows, **_size_in_bytes(counted[part].size)}
        for part in parts
        if part in counted and counted[part].rows is not None
    }


def _is_replaced(access: Access) -> bool:
    lifecycle = access.dataset.lifecycle
    layer = model.read_facet(access.dataset.facets, "storage", model.Storage).storageLayer.lower()
    is_rewritten = lifecycle != "CREATE" and layer in _TABLE_FORMATS
    is_summed = access.seen is not None and access.seen.writes is not None
    return lifecycle in _REPLACING and not is_summed and not is_rewritten


def _measured_metrics(subject: Subject, access: Access) -> Json:
    """Give the metrics of a dataset that a task measured: rows, bytes, statistics of columns.

    :param subject: the event's entities with their URNs
    :param access: the access to the dataset
    :return: fields of ``datasetProfile``; {} if the event has no facet ``dataQualityMetrics``
    """
    metrics = access.read_facet("dataQualityMetrics", model.QualityMetrics)
    rows = metrics.rowCount
    columns = [
        {"fieldPath": subject.path(access.dataset.name, name), **_statistics(one, rows)}
        for name, one in islice(metrics.columnMetrics.items(), MAX_COLUMNS)
    ]
    return {
        **({"rowCount": rows} if rows is not None else {}),
        **_size_in_bytes(metrics.bytes),
        **({"fieldProfiles": columns} if columns else {}),
    }


def _measured_part(access: Access, parts: list[Part]) -> Part:
    """Give the part of a dataset that a task measured.

    :param access: the access to the dataset
    :param parts: the parts that were accessed; the first one was measured
    :return: the whole dataset if the event says nothing about parts, as those of tools that test
        data do not: OpenLineage defines the metrics as those of the dataset
    """
    return WHOLE if parts[0] == NOT_KNOWN and access.seen is None else parts[0]


def _size_in_bytes(size: int | None) -> Json:
    return {"sizeInBytes": size} if size else {}


def _statistics(metrics: model.ColumnMetrics, rows: int | None) -> Json:
    """Give a column's statistics; values such as the minimum are texts for every type of column.

    :param metrics: the metrics of the column in ``dataQualityMetrics``
    :param rows: the number of rows, for shares such as that of nulls; None if it is not known
    :return: fields of ``DatasetFieldProfile``; unknown ones are left out
    """
    quantiles = {
        stored(quantile, 20): _metric_text(value)
        for quantile, value in islice(metrics.quantiles.items(), 100)
    }
    statistics = {
        **_count_and_share("nullCount", "nullProportion", metrics.nullCount, rows),
        **_count_and_share("uniqueCount", "uniqueProportion", metrics.distinctCount, rows),
        "min": _metric_text(metrics.min),
        "max": _metric_text(metrics.max),
        "median": quantiles.get("0.5"),
        "quantiles": [{"quantile": q, "value": value} for q, value in quantiles.items() if value],
    }
    return {key: value for key, value in statistics.items() if value not in (None, "", [])}


def _count_and_share(count_key: str, share_key: str, count: int | None, rows: int | None) -> Json:
    if count is None:
        return {}
    return {count_key: count, **({share_key: count / rows} if rows and count <= rows else {})}


def _metric_text(value: model.Value) -> str:
    if isinstance(value, bool) or value is None:
        return ""
    return stored(value if isinstance(value, str) else number_text(value), 200)
