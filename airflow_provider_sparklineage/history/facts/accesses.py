"""What an event says was read and written: each dataset, whose word that is, and how.

Evidence is this package's: ``both``, ``observer`` or ``listener`` saw it, it is ``declared``, or
the ``last_known`` run did it. ``other`` is another producer's word.

The mode of a write is what facet ``lifecycleStateChange`` says. Spark's writers leave that away for
an append (the listener has no such state); of other producers it is unknown then, and of what
nobody saw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.event.document import SCHEMA_BASE
from airflow_provider_sparklineage.history.facts.extents import Known, extents
from airflow_provider_sparklineage.history.facts.line import Access
from airflow_provider_sparklineage.history.facts.names import dataset_name
from airflow_provider_sparklineage.model.terms import Side, Witness

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.history.facts.shapes import (
        Checked,
        Dataset,
        Event,
        RunFacets,
        Seen,
        SideFacets,
    )

LAST_KNOWN, OTHER = "last_known", "other"
UNKNOWN, APPEND = "unknown", "append"

_OURS = SCHEMA_BASE.removesuffix("facet")
_OF_SPARK = "/integration/spark"
_WITNESSES = frozenset(Witness)
_MODES = frozenset({"overwrite", "create", "drop", "truncate", "rename", "alter"})


class Reporter(NamedTuple):
    """Who made an event, as far as that says how to take its word.

    :param is_ours: whether this package did
    :param is_spark: whether it is of Spark's jobs
    """

    is_ours: bool
    is_spark: bool


def reporter(event: Event) -> Reporter:
    """Find out who made an event.

    What Airflow sends of this package's has Airflow as its producer: the facets tell, and of START,
    which has no run facet of this package, the datasets'.
    """
    facets, producer = event.run.facets, event.producer or ""
    is_ours = producer.startswith(_OURS) or bool(facets and (facets.capture or facets.check))
    is_ours = is_ours or any(map(_is_declared, (*(event.inputs or ()), *(event.outputs or ()))))
    return Reporter(is_ours, is_ours or _OF_SPARK in producer)


def accesses(event: Event, who: Reporter) -> Iterator[Access]:
    """Give what was read, then what was written."""
    for side, datasets in ((Side.READ, event.inputs), (Side.WRITE, event.outputs)):
        if datasets:
            seen, checked = _entries(event.run.facets, side)
            for dataset in datasets:
                name = (dataset.namespace, dataset.name)
                yield from _of(dataset, side, seen.get(name), checked.get(name), who)


_Name = tuple[str, str]


def _entries(
    facets: RunFacets | None, side: Side
) -> tuple[dict[_Name, Seen], dict[_Name, Checked]]:
    """Give the entries of a side in this package's run facets."""
    if facets is None:
        return {}, {}
    seen = [one for one in (facets.capture and facets.capture.datasets) or () if one.side == side]
    check = facets.check
    checked = (check and (check.reads if side is Side.READ else check.writes)) or ()
    return _by_name(seen), _by_name(checked)


def _by_name(entries: Iterable[Any]) -> dict[_Name, Any]:
    return {(one.dataset.namespace, one.dataset.name): one for one in entries}


def _of(
    dataset: Dataset, side: Side, seen: Seen | None, checked: Checked | None, who: Reporter
) -> Iterator[Access]:
    is_write = side is Side.WRITE
    facets = dataset.outputFacets if is_write else dataset.inputFacets
    evidence = _evidence(dataset, seen, checked, who)
    mode = _mode(dataset, evidence, who) if is_write else ""
    parts = extents(Known(dataset, facets, seen, checked, mode))
    rows, size = _counts(facets, is_write=is_write) if len(parts) == 1 else (None, None)
    is_failed = bool((seen and seen.failed) or (checked and checked.failed))
    name = dataset_name(dataset.namespace, dataset.name)
    for part in parts:
        yield Access(
            side,
            *name,
            part.extent,
            is_failed,
            part.partition,
            part.cell,
            part.dims,
            part.first_partition,
            part.last_partition,
            part.partition_count,
            part.condition,
            evidence,
            mode or None,
            rows,
            size,
        )


def _counts(facets: SideFacets | None, *, is_write: bool) -> tuple[int | None, int | None]:
    """Give rows and bytes."""
    if facets is None:
        return None, None
    found = facets.output_statistics if is_write else facets.input_statistics
    return (found.rowCount, found.size) if found else (None, None)


def _evidence(dataset: Dataset, seen: Seen | None, checked: Checked | None, who: Reporter) -> str:
    if not who.is_ours:
        return OTHER
    if seen and seen.witness in _WITNESSES:
        return seen.witness
    if checked:  # of more datasets than the capture facet lists, this is all that is known
        return checked.unreported or Witness.LISTENER
    return Witness.DECLARED if _is_declared(dataset) else LAST_KNOWN


def _is_declared(dataset: Dataset) -> bool:
    """Whether it is this package's own word that there is such a dataset."""
    source = dataset.facets and dataset.facets.data_source
    return bool(source and source.producer and source.producer.startswith(_OURS))


def _mode(dataset: Dataset, evidence: str, who: Reporter) -> str:
    lifecycle = dataset.facets and dataset.facets.lifecycle
    if lifecycle and lifecycle.change:
        change = lifecycle.change.lower()
        return change if change in _MODES else UNKNOWN
    was_seen = who.is_spark and evidence not in (Witness.DECLARED, LAST_KNOWN)
    return APPEND if was_seen else UNKNOWN
