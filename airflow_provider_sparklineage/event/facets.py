"""Facets of this package on partitions, on subsets, and on the collection of a try's lineage.

======================================  ==========================================================
``subset`` of an input or output        the specification's facet: types location, partition,
                                        compare and binary only
``sparkLineage_subsetDescription``      parts that no condition of that facet fits, in words
``sparkLineage_partitions``             an output's partitioning, and its partitions for people
``partitions``                          the facet of an OpenLineage proposal, on request
``sparkLineage_partitionCheck``         expected partitions with their sources, and observed ones
``sparkLineage_capture``                the collected lineage, and the missing parts with reasons
======================================  ==========================================================

The partitioning of an input is in the run facet only: as a dataset facet it would replace the facet
from the task that wrote the dataset. The schemas of the package's own facets are shipped in
``schemas/``.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, assert_never

from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.event.document import replaced
from airflow_provider_sparklineage.event.model import name_of
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import NOT_COUNTED
from airflow_provider_sparklineage.lineage.dataset import Accessed
from airflow_provider_sparklineage.lineage.partitions.comparison import PartitionStatus
from airflow_provider_sparklineage.model import subset
from airflow_provider_sparklineage.model.datasets import short_names
from airflow_provider_sparklineage.model.producer import SCHEMA_BASE, facet, present
from airflow_provider_sparklineage.model.terms import Witness
from airflow_provider_sparklineage.model.texts import truncated

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from airflow_provider_sparklineage.event.document import Event, Facets
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
    from airflow_provider_sparklineage.lineage.partitions.expected import Expected
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.degradations import Degradation
    from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
    from airflow_provider_sparklineage.spark.capture.lines import ReadReport

MAX_SOURCES = 100
"""The most values of one dataset for which the sources are listed."""


# --- conditions -----------------------------------------------------------------------------------

_SUBSET = "https://openlineage.io/spec/facets/1-0-0/BaseSubsetDatasetFacet.json#/$defs/"
_SUBSETS = {
    Side.READ: (f"{_SUBSET}InputSubsetInputDatasetFacet", "inputCondition"),
    Side.WRITE: (f"{_SUBSET}OutputSubsetOutputDatasetFacet", "outputCondition"),
}
_DESCRIPTION = f"{SCHEMA_BASE}:subsetDescription:1-0-0"


def subset_facets(dataset: LineageDataset, side: Side) -> Facets:
    """Make the facets on the accessed part of a dataset, by key; {} if no condition is known.

    :param side: whether the dataset was read or written
    """
    schema, key = _SUBSETS[side]
    condition, rest = _condition(dataset.selected.condition)
    facets: Facets = {}
    if condition is not None:
        facets[model.SUBSET_KEY] = facet(schema, **{key: condition})
    if rest:
        facets[model.DESCRIPTION_KEY] = facet(_DESCRIPTION, description=rest)
    return facets


def _condition(condition: subset.Condition | None) -> tuple[dict[str, Any] | None, str]:
    """Split a condition into one that the specification can express, and a text for the rest.

    Both sides of an AND are true of all rows, so each side may stand alone. A side of an OR may
    not, so an OR with a side that cannot be expressed becomes a text as a whole.

    :return: the condition, or None if no part can be expressed; and the text, empty if all can
    """
    match condition:
        case None:
            return None, ""
        case subset.Description(text):
            return None, text
        case subset.Partitions(partitions):
            return {"partitions": [_named(p) for p in sorted(partitions)], "type": "partition"}, ""
        case subset.Locations(locations):
            return {"locations": sorted(locations), "type": "location"}, ""
        case subset.Compare(field, comparison, value):
            compare = {
                "left": {"field": field, "type": "field"},
                "right": {"value": value, "type": "literal"},
                "comparison": str(comparison),
                "type": "compare",
            }
            return compare, ""
        case subset.Binary(operator):
            (left, left_rest), (right, right_rest) = map(
                _condition, (condition.left, condition.right)
            )
            if operator is subset.Operator.OR and (left_rest or right_rest):
                return None, subset.to_text(condition)
            rest = " AND ".join(filter(None, (left_rest, right_rest)))
            if left is None or right is None:
                return left or right, rest
            binary = {"left": left, "right": right, "operator": str(operator), "type": "binary"}
            return binary, rest
        case _:
            assert_never(condition)


# --- partitioning ---------------------------------------------------------------------------------


def partitioning_facets(dataset: LineageDataset, *, bare: bool) -> Facets:
    """Make the facets on an output's partitioning and its written partitions, by key.

    :param bare: whether to add the facet ``partitions`` of the OpenLineage proposal, too; it has
        only the proposal's keys
    :return: {} if the write failed, or the output has neither dimensions nor partitions
    """
    dimensions, partitions = dataset.dimensions, dataset.selected.partitions
    if dataset.failed or (not dimensions and not partitions):
        return {}
    entries = [{"fields": list(d.fields), "transform": d.transform} for d in dimensions]
    written = _counted(partitions) or {"summary": dataset.accessed.text(Side.WRITE)}
    facets = {
        model.PARTITIONS_KEY: facet(
            f"{SCHEMA_BASE}:partitions:1-0-0",
            dimensions=entries,
            **written,
            removed=_removed(dataset),
            replaced=str(Accessed.ALL) if dataset.is_replaced else None,
            truncated=dataset.selected.skipped > 0,
            description=_partitioned_by(dimensions),
            **_figures(dataset),
        )
    }
    if bare and entries:
        facets[model.BARE_PARTITIONS_KEY] = facet(
            f"{SCHEMA_BASE}:barePartitions:1-0-0",
            dimensions=entries,
            description=_partitioned_by(dimensions),
        )
    return facets


def _figures(dataset: LineageDataset) -> dict[str, list[int] | None]:
    """Give the rows and bytes of an output's written partitions, in the order of the partitions.

    An event has no nulls, so a number that is not known is ``NOT_KNOWN``. A list is None if the
    event does not name the partitions, or if none of its numbers is known.
    """
    condition = dataset.selected.condition
    named = sorted(condition.partitions) if isinstance(condition, subset.Partitions) else []
    figures = [dataset.figures.get(partition, NOT_COUNTED) for partition in named]
    return {
        "rows": _known([one.rows for one in figures]),
        "bytes": _known([one.size for one in figures]),
    }


def _known(numbers: list[int | None]) -> list[int] | None:
    known = [model.NOT_KNOWN if number is None else number for number in numbers]
    return known if any(number != model.NOT_KNOWN for number in known) else None


def _removed(dataset: LineageDataset) -> dict[str, Any] | None:
    """Describe the partitions of an output that were emptied; None if there are none."""
    named = [_named(one) for one in sorted(dataset.selected.removed)]
    counted = _counted(dataset.removed or None)
    return counted and {**counted, **({"partitions": named} if named else {})}


def _named(partition: Partition) -> dict[str, Any]:
    return {"dimensions": partition.as_dict(), "identifier": str(partition)}


def _partitioned_by(dimensions: Sequence[Dimension]) -> str | None:
    """Format a partitioning as ``PARTITIONED BY (dt, days(ts))``, like the OpenLineage proposal.

    :return: None if there are no dimensions
    """
    texts = []
    for dimension in dimensions:
        fields = ", ".join(dimension.fields)
        name, bracket, argument = dimension.transform.partition("[")
        if name == "identity":
            texts.append(fields)
        elif bracket:
            texts.append(f"{name}({argument.rstrip(']')}, {fields})")
        elif "(" in name:
            texts.append(name)
        else:
            texts.append(f"{name}({fields})")
    return f"PARTITIONED BY ({', '.join(texts)})" if texts else None


# --- the check of partitions ----------------------------------------------------------------------


def check_facet(
    inputs: Collection[LineageDataset], outputs: Collection[LineageDataset]
) -> dict[str, Any] | None:
    """Make the facet ``sparkLineage_partitionCheck`` of the inputs and outputs.

    It has each dataset's expected partitions with their sources, and the observed partitions.

    :return: None if no dataset has expectations or is partitioned
    """
    if not any(d.expected or d.dimensions for d in (*inputs, *outputs)):
        return None
    reads = [_checked(dataset, Side.READ) for dataset in inputs]
    return _check(reads, [_checked(dataset, Side.WRITE) for dataset in outputs])


def with_renamed_datasets(
    facets: Facets, names: Mapping[Side, Mapping[DatasetName, DatasetName]]
) -> Facets:
    """Rename the datasets in the partition check and in the capture facet of a run.

    :param names: for each side, a dict of the new names by the old ones; entries of datasets that
        are not in the dict are left out
    """
    if "datasets" in (capture := facets.get(model.CAPTURE_KEY, {})):
        datasets = [
            {**entry, "dataset": names[entry["side"]][name]._asdict()}
            for entry in capture["datasets"]
            if (name := name_of(entry["dataset"])) in names[entry["side"]]
        ]
        capture = {**capture, "datasets": datasets}
    if "maintenance" in capture:
        new = {**names[Side.READ], **names[Side.WRITE]}  # most of them are neither
        capture = {
            **capture,
            "maintenance": [
                {**entry, "dataset": new.get(name := name_of(entry["dataset"]), name)._asdict()}
                for entry in capture["maintenance"]
            ],
        }
    if capture:
        facets = {**facets, model.CAPTURE_KEY: capture}
    check = facets.get(model.CHECK_KEY)
    if check is None:
        return facets
    reads, writes = (
        [
            _renamed_entry(entry, names[side][name])
            for entry in check[f"{side}s"]
            if (name := name_of(entry["dataset"])) in names[side]
        ]
        for side in (Side.READ, Side.WRITE)
    )
    if any("from" in entry or "dimensions" in entry for entry in (*reads, *writes)):
        return {**facets, model.CHECK_KEY: {**check, **_check(reads, writes)}}
    return {key: facet for key, facet in facets.items() if key != model.CHECK_KEY}


def _renamed_entry(entry: dict[str, Any], name: DatasetName) -> dict[str, Any]:
    before = _label(entry["dataset"]["name"])
    summary = _label(name.name) + entry["summary"].removeprefix(before)
    return {**entry, "dataset": name._asdict(), "summary": summary}


def _check(reads: list[dict[str, Any]], writes: list[dict[str, Any]]) -> dict[str, Any]:
    phrases: dict[str, list[str]] = {}
    for side, entries in ((Side.READ, reads), (Side.WRITE, writes)):
        for entry in entries:
            how = model.fitted(entry, model.Checked).how(side)
            phrases.setdefault(how, []).append(entry["summary"])
    return facet(
        f"{SCHEMA_BASE}:partitionCheck:1-0-0",
        summary="; ".join(f"{how} {', '.join(of)}" for how, of in phrases.items()),
        status=str(_of_run(reads, writes)),
        reads=reads,
        writes=writes,
    )


def _of_run(reads: list[dict[str, Any]], writes: list[dict[str, Any]]) -> PartitionStatus:
    """Give the status of a run: the status of its datasets that needs attention most.

    A run is not ``matched`` if it wrote partitions that nobody knows, to whichever dataset.

    :param reads: the entries of the partition check that are about reads
    :param writes: those about writes
    """
    statuses = {entry["status"] for entry in (*reads, *writes)}
    # The statuses are in the order in which they need attention.
    worst = next((each for each in PartitionStatus if each in statuses), PartitionStatus.UNDECLARED)
    is_unknown = any(
        entry.get("accessed") == "unknown" and not {"failed", "unreported"} & entry.keys()
        for entry in writes
    )
    return PartitionStatus.UNOBSERVED if worst is PartitionStatus.MATCHED and is_unknown else worst


def _label(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2]


def _checked(dataset: LineageDataset, side: Side) -> dict[str, Any]:
    expected = dataset.expected
    observed = dataset.subset if dataset.observed else None
    return present(
        {
            "dataset": dataset.name._asdict(),
            "summary": f"{_label(dataset.name.name)}{access_text(dataset, side)}",
            "status": str(dataset.check.status),
            "accessed": str(dataset.accessed),
            "dimensions": [_dimension(d) for d in dataset.dimensions] or None,
            "condition": _condition(dataset.selected.condition)[0],
            "from": None if expected is None else source_entries(expected),
            "expected": None if expected is None else _counted(expected.partitions),
            "observed": None if observed is None else _counted(observed.partitions),
            "removed": _counted(dataset.removed or None),
            **_reservations(dataset),
            "missing": _counted(dataset.check.missing or None),
            "unexpected": _counted(dataset.check.unexpected or None),
        }
    )


def _reservations(dataset: LineageDataset) -> dict[str, Any]:
    """Give one more key of a dataset's entry in the partition check, by the state of the access.

    :return: a dict with one key: ``failed``, which is True, if the access failed; ``unreported``,
        which is ``declared`` or ``last_known``, if the dataset is only declared, or known from the
        last run; else ``planned``, with the partitions that Spark only planned to read, or None if
        there are none
    """
    if dataset.failed:
        return {"failed": True}
    if dataset.witness in (None, Witness.DECLARED):
        return {"unreported": str(dataset.witness or "last_known")}
    return {"planned": _counted(dataset.planned or None)}


def access_text(dataset: LineageDataset, side: Side) -> str:
    """Describe the accessed part of a dataset, in words that follow the dataset's name."""
    if dataset.failed:
        return ", which failed"
    removed = _counted(dataset.removed or None)
    if removed and dataset.accessed is Accessed.REMOVED:
        return f" {removed['summary']}"
    text = f" {dataset.selected.summary or dataset.accessed.text(side)}"
    if removed:
        return f"{text} (removed: {removed['summary']})"
    if not dataset.planned or dataset.subset is None:
        return text
    if dataset.planned == dataset.subset.partitions:
        return f"{text}, ended early"
    return f"{text}, {len(dataset.planned)} of them only planned"


def _dimension(dimension: Dimension) -> dict[str, Any]:
    entry = {"fields": list(dimension.fields), "transform": dimension.transform}
    return entry | ({"format": dimension.format} if dimension.format else {})


def _counted(partitions: Collection[Partition] | None) -> dict[str, Any] | None:
    if partitions is None:
        return None
    span = subset.extent(partitions)
    entry: dict[str, Any] = {"summary": span.summary, "count": span.count}
    return entry | ({"first": str(span.first), "last": str(span.last)} if span.count else {})


def source_entries(expected: Expected) -> list[dict[str, Any]]:
    """Give the entries ``from`` of the partition check, one for each source of an expected value.

    At most ``MAX_SOURCES`` are given. :func:`.steps.texts.shortened` truncates the templates later.
    """
    return [
        present(
            {
                "value": source.value,
                "kind": str(source.kind),
                "field": source.field,
                "template": source.template,
                "dimension": source.dimension or None,
                "expressions": list(source.expressions) or None,
                "variables": list(source.variables) or None,
            }
        )
        for source in expected.sources[:MAX_SOURCES]
    ]


# --- lines of the partition check -----------------------------------------------------------------
#
# A backend that shows a facet as JSON shows the texts at its top first, and cuts long ones: Marquez
# after thirty characters. It does not cut keys. So the key names the dataset, and the text its
# partitions. The lines repeat the entries, and no command of this package reads them.


MAX_LINES = 20
"""The most datasets that get a line of text; outputs come first."""
MAX_LINE = 200
MORE_KEY = "and more"


def with_lines(event: Event) -> Event:
    """Add a line of text about each dataset to the event's partition check.

    If there are more than ``MAX_LINES`` datasets, the others are only counted. Existing lines are
    replaced, because datasets may have got other names. An event without the check, such as that of
    a START, is not changed.
    """
    facets = event["run"]["facets"]
    if model.CHECK_KEY not in facets:
        return event
    check = {key: value for key, value in facets[model.CHECK_KEY].items() if " " not in key}
    entries = [(side, e) for side in (Side.WRITE, Side.READ) for e in check[f"{side}s"]]
    names = short_names(name_of(entry["dataset"]) for _, entry in entries)
    for side, entry in entries[:MAX_LINES]:
        checked = model.fitted(entry, model.Checked)
        line = f"{checked.how(side)} {names[name_of(entry['dataset'])]}"
        check[line] = truncated(checked.part, MAX_LINE)
    if len(entries) > MAX_LINES:
        check[MORE_KEY] = f"{len(entries) - MAX_LINES} datasets, in reads and writes"
    return replaced(event, run_facets={**facets, model.CHECK_KEY: check})


# --- the collection of the lineage ----------------------------------------------------------------


MAX_DATASETS = 500
"""The most datasets in the capture facet, outputs first; if there are more, it has counts, too."""
MAX_DEGRADATIONS = 100
"""The most degradations in the capture facet; if there are more, it has counts by code, too."""


def capture_facet(
    lineage: TaskLineage,
    report: ReadReport,
    degradations: Sequence[Degradation],
    inputs: Sequence[LineageDataset],
    outputs: Sequence[LineageDataset],
) -> dict[str, Any]:
    """Make the facet ``sparkLineage_capture``, on the collection of a try's lineage.

    It has the Spark application, the number of events that were read, for each dataset the reporter
    of the access (*witness*: listener, observer, …), and the degradations.

    :param report: result of reading the listener's events
    :param degradations: those of the lineage and of the facets that were made of it
    :param inputs: the inputs as the event has them
    :param outputs: the outputs as the event has them
    """
    application = lineage.application
    bare = facet(
        f"{SCHEMA_BASE}:capture:1-0-0",
        applicationId=(application and application.application_id) or None,
        applicationRunId=_uuid(application.run_id) if application else None,
        sparkVersion=(application and application.spark_version) or None,
        listenerVersion=(application and application.listener_version) or None,
        attempts=lineage.attempts if lineage.attempts > 1 else None,
        actions=len(application.actions) if application else 0,
        events=report.events,
        bytes=report.bytes,
        malformedLines=report.malformed_lines,
        degradations=[],
    )
    seen = [
        (dataset, side)
        for side, of_side in ((Side.WRITE, outputs), (Side.READ, inputs))
        for dataset in of_side
        if dataset.witness is not None
    ]
    if seen:
        bare["datasets"] = [_accessed(*each) for each in seen[:MAX_DATASETS]]
    if lineage.maintenance:
        bare["maintenance"] = [
            {"dataset": name._asdict(), "operation": operation}
            for name, operation in lineage.maintenance[:MAX_DATASETS]
        ]
    if len(seen) > MAX_DATASETS:
        bare["datasetCounts"] = dict(sorted(Counter(str(side) for _, side in seen).items()))
    return with_degradations(bare, degradations)


def _accessed(dataset: LineageDataset, side: Side) -> dict[str, Any]:
    return present(
        {
            "dataset": dataset.name._asdict(),
            "side": str(side),
            "witness": str(dataset.witness),
            "accessed": str(dataset.accessed),
            "failed": dataset.failed or None,
            "writes": dataset.writes if dataset.writes > 1 else None,
            "planned": len(dataset.planned) or None,
            "removed": len(dataset.removed) or None,
            "attempt": dataset.attempt,
        }
    )


_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def _uuid(run_id: str) -> str | None:
    return run_id if _UUID.fullmatch(run_id) else None  # OpenLineage allows no other run ids


def declared(event: Event, lost: Sequence[Degradation]) -> Event:
    """Add degradations to an event for the parts that a step has removed from it.

    An event without the capture facet gets none: it is the event of a job that has not run, in
    which a step has hardly anything to remove.

    :param lost: one degradation for each loss
    """
    facets = event["run"]["facets"]
    if not lost or (capture := facets.get(model.CAPTURE_KEY)) is None:
        return event
    declaring = {**facets, model.CAPTURE_KEY: with_degradations(capture, lost)}
    return replaced(event, run_facets=declaring)


def with_degradations(
    capture: dict[str, Any], more: Sequence[Degradation], *, in_front: bool = False
) -> dict[str, Any]:
    """Add degradations to the capture facet.

    If its list cannot take all degradations, the facet also gets their counts by code.

    :param more: the added degradations
    :param in_front: whether the new ones come first, so that none of them is lost from a full list
    """
    if not more:
        return capture
    known: list[dict[str, Any]] = capture["degradations"]
    counts = Counter(capture.get("degradationCounts") or (d["code"] for d in known))
    counts += Counter(d.code for d in more)
    new = [_entry(d) for d in more[:MAX_DEGRADATIONS]]
    entries = ([*new, *known] if in_front else [*known, *new])[:MAX_DEGRADATIONS]
    made = {**capture, "degradations": entries}
    if len(entries) < counts.total():
        made["degradationCounts"] = {str(code): counts[code] for code in sorted(counts)}
    return made


def _entry(degradation: Degradation) -> dict[str, Any]:
    dataset, side = degradation.dataset, degradation.side
    return present(
        {
            "code": str(degradation.code),
            "message": degradation.message,
            "dataset": dataset and dataset._asdict(),
            "side": side and str(side),
            "column": degradation.column,
        }
    )
