"""What a run did to each dataset: whether it did at all, which part, how much, as expected or not.

Facets of the dataset and those of the run are put together here, for all that tells DataHub of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.partitions.conditions import condition
from airflow_provider_sparklineage.datahub.values import plain
from airflow_provider_sparklineage.model.credentials import scrub_name
from airflow_provider_sparklineage.model.subset import Partitions, to_text
from airflow_provider_sparklineage.model.terms import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from airflow_provider_sparklineage.datahub.subject import Dataset, Subject
    from airflow_provider_sparklineage.event.document import Facets

MAX_PARTITIONS = 100
"""Partitions of one access that are named one by one; more are a range in one."""
MAX_NAMES = 10_000
"""Partitions of one access that are looked at; this package's events list fewer."""
FULL_TABLE = "FULL_TABLE_SNAPSHOT"
"""DataHub's name for all of a dataset: its pages ask for profiles and operations by it."""
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
    def facets(self) -> Facets:
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
        return lenient.text(lenient.at(self.dataset.facets, _LIFECYCLE, _LIFECYCLE))

    @property
    def named(self) -> tuple[str, ...]:
        """Give the partitions that were accessed, as far as the event names them."""
        found = self._condition
        if lenient.at(found, "type") == "location":
            return tuple(map(scrub_name, lenient.texts(_some(found, "locations"))))
        if lenient.at(found, "type") != "partition":
            return ()
        partitions = lenient.items(_some(found, "partitions"))
        names = (lenient.text(p.get("identifier")) or _name(p) for p in partitions)
        return tuple(map(scrub_name, filter(None, names)))

    @property
    def condition(self) -> str:
        """Describe in words which rows were accessed, where it is no matter of partitions only."""
        is_of_partitions = lenient.at(self._condition, "type") == "partition"
        found = None if is_of_partitions else condition(self._condition)
        words = lenient.text(lenient.at(self.facets, _DESCRIPTION, "description"))
        texts = [] if found is None else [to_text(found)]
        return plain(" AND ".join([*texts, *([words] if words else [])]))

    @property
    def summary(self) -> str:
        """Say in a few words what was accessed; empty if nothing is known of it."""
        if self.is_counted:
            return plain(lenient.at(self.dataset.facets, _PARTITIONS, "summary"))
        if lenient.at(self.check, "observed", "count"):
            return plain(lenient.at(self.check, "observed", "summary"))
        return _listed(self.named) or self.condition or self._words

    @property
    def is_counted(self) -> bool:
        """Whether the dataset's own facet has which of its partitions were written."""
        count = lenient.number(lenient.at(self.dataset.facets, _PARTITIONS, "count"))
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
        return lenient.at(self.facets, "subset", key)


_LIFECYCLE = "lifecycleStateChange"
_PARTITIONS = "sparkLineage_partitions"
_DESCRIPTION = "sparkLineage_subsetDescription"
_WORDS = {"all": "all of it", "part": "a part of it", "none": "nothing of it"}


def _some(found: Any, key: str) -> list[Any]:
    values = lenient.at(found, key)
    return values[: MAX_NAMES + 1] if isinstance(values, list) else []


def _name(partition: dict[str, Any]) -> str:
    found = condition({"type": "partition", "partitions": [partition]})
    return str(next(iter(found.partitions))) if isinstance(found, Partitions) else ""


def _listed(names: tuple[str, ...]) -> str:
    if len(names) <= MAX_PARTITIONS and len(text := ", ".join(names)) <= lenient.MAX_TEXT:
        return text
    count = f"more than {MAX_NAMES:,}" if len(names) > MAX_NAMES else len(names)
    return lenient.text(f"{min(names)} … {max(names)} ({count} partitions)")


def accesses(subject: Subject, side: Side) -> Iterator[Access]:
    """Give what the run read or wrote; twice what the event has by its path and as a table."""
    capture = lenient.mapping(subject.run_facets.get("sparkLineage_capture"))
    check = lenient.mapping(subject.run_facets.get("sparkLineage_partitionCheck"))
    seen = _by_name(e for e in lenient.items(capture.get("datasets")) if e.get("side") == side)
    checked = _by_name(lenient.items(check.get(f"{side}s")))
    is_listed = bool(capture) and "datasetCounts" not in capture
    for dataset in subject.inputs if side is Side.READ else subject.outputs:
        entry = seen.get(dataset.name, {})
        is_known = bool(entry) or is_listed
        was = _is_witnessed(entry) if is_known else subject.state == "COMPLETE"
        yield Access(dataset, side, entry, checked.get(dataset.name, {}), was)


def _is_witnessed(entry: Mapping[str, Any]) -> bool:
    return entry.get("witness") in _WITNESSED and not entry.get("failed")


def _by_name(entries: Iterable[dict[str, Any]]) -> dict[tuple[Any, Any], Mapping[str, Any]]:
    """Find entries by namespace and name, as :func:`.event.reading.accesses` does of our events."""
    found: dict[tuple[Any, Any], Mapping[str, Any]] = {}
    for entry in entries:
        name = lenient.at(entry, "dataset", "namespace"), lenient.at(entry, "dataset", "name")
        if all(isinstance(one, str) for one in name):
            found[name] = entry
    return found
