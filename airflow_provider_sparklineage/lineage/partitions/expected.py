"""Bind expectations to the datasets that an application read, and to those that it wrote.

Policy, case by case:

- If partitions are declared for the reads of a dataset, only these are expected to be read, and
  paths do not count; the same holds for writes.
- If the schedule names upstream partitions of a dataset, only these are expected to be read, and
  paths do not count. Other tasks of the run may read some of them, so that none is missing here.
- A path does not show whether it is read or written. So its partitions are expected of the reads if
  its dataset is read, and of the writes if it is written. Several paths of one dataset are united.
- A table identifier is bound through the dataset's symlinks.
- The run's partition key is expected of every output that has the dimensions of the key, if no
  partitions of the dataset itself are declared.
- Inferred dates are not expected: they only show the origin of the values of observed partitions.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Expectation, Kind, Side, Source
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.timestamps import canonical_time, date_of_columns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from airflow_provider_sparklineage.lineage.observed.accesses import Subset
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.partitioning import Dimension, Partition


class Expected(Frozen, frozen=True):
    """The part of a dataset that is expected to be read, or to be written.

    :param kind: INFERRED if nothing is expected, and dates in the arguments explain values of
        observed partitions
    :param partitions: None if the full dataset is expected, or only the other fields state a part
    :param locations: names of paths, with all folders, if the last folders name no partition
    :param where: predicates; each row fulfils at least one of them; () if one of the united
        expectations has no predicate
    :param is_glob: whether values in ``partitions`` may be patterns such as ``2024-05-*``
    :param sources: the origins of the expected values, and of the values that dates explain
    :param choices: (partitions, predicate) of each of the united expectations, None for any
        partitions and "" for no predicate; () if none of them has a predicate
    """

    kind: Kind
    partitions: frozenset[Partition] | None = None
    dimensions: tuple[Dimension, ...] = ()
    locations: frozenset[str] = frozenset()
    where: tuple[str, ...] = ()
    is_glob: bool = False
    sources: tuple[Source, ...] = ()
    choices: tuple[tuple[frozenset[Partition] | None, str], ...] = ()


class Expectations:
    """All expectations of a task; :meth:`of` gives those of one dataset."""

    def __init__(self, expectations: Iterable[Expectation] = ()) -> None:
        self._all = tuple(expectations)
        self._bound: set[Expectation] = set()

    def of(
        self,
        dataset: DatasetName,
        links: Collection[DatasetName],
        side: Side,
        observed: Subset | None,
    ) -> Expected | None:
        """Give the part of a dataset that is expected to be read, or written.

        :param links: the dataset's other names
        :param observed: the partitions that were observed: they decide whether the run's partition
            key is about this dataset, and which dates in the task's arguments are expected values
        :return: None if nothing is expected, and no date explains an observed value
        """
        if not self._all:
            return None
        here = [e for e in self._all if e.side in (None, side)]
        own = [e for e in here if self._is_about(e, dataset, links)]
        self._bound |= set(own)
        choices = (
            [e for e in own if e.kind is Kind.DECLARED],
            self._by_key(here, observed),
            self._by_schedule(own, observed),
            [e for e in own if e.kind is Kind.PATH],
        )
        statements = next((c for c in choices if any(map(_has_content, c))), [])
        inferred = _explaining(here, observed)
        known = {_value(source) for e in statements for source in e.sources}
        explaining = [source for source in inferred if _value(source) not in known]
        if not statements and not explaining:
            return None
        return united(statements, explaining)

    def unbound_tables(self) -> list[str]:
        """List the declared tables that match none of the datasets passed to :meth:`of`."""
        return sorted({e.table for e in self._all if e.table and e not in self._bound})

    @staticmethod
    def _by_schedule(own: Sequence[Expectation], observed: Subset | None) -> list[Expectation]:
        """Give the expectations from the schedule, with the columns of the dataset.

        :param own: the expectations of the dataset
        :param observed: the dataset's observed partitions; None if they are not known
        """
        here = [e for e in own if e.kind is Kind.SCHEDULE]
        if observed is None or not here:
            return []  # without observations, a path says more
        # Imported here, because few DAGs have such a schedule.
        from airflow_provider_sparklineage.lineage.partitions.keys import fitted

        return [found for e in here if (found := fitted(e, observed)) is not None]

    @staticmethod
    def _is_about(
        expectation: Expectation, dataset: DatasetName, links: Collection[DatasetName]
    ) -> bool:
        if expectation.dataset is not None:
            return expectation.dataset == dataset or expectation.dataset in links
        if expectation.table:
            # A folder is not a table, though it may have dots in its name: /lake/old.revenue.
            known = {n.name.casefold() for n in (dataset, *links) if "/" not in n.name}
            return _is_table(expectation.table.replace("`", "").casefold(), known)
        return False

    @staticmethod
    def _by_key(here: Sequence[Expectation], observed: Subset | None) -> list[Expectation]:
        """Find the expectations of the run's partition key, if the dataset has its dimensions.

        :param here: the task's expectations of the reads, or of the writes, and those of either
        :param observed: the dataset's observed partitions; None if they are not known
        """
        if observed is None:
            return []
        labels = {d.label for d in observed.dimensions}
        return [
            e
            for e in here
            if e.kind is Kind.DECLARED
            and e.dataset is None
            and not e.table
            and {d.label for d in e.dimensions} <= labels
        ]


def _is_table(wanted: str, known: Collection[str]) -> bool:
    """Whether the identifier ``wanted`` matches a known table; one of the two may lack the catalog.

    The listener leaves catalogs out, and the observer does not. If the catalog of a table is known,
    the same name in another catalog is another table.
    """
    parts = wanted.split(".")
    names = [name.split(".") for name in known]
    if any(name[-len(parts) :] == parts for name in names):
        return True
    as_long = [name for name in names if len(name) >= len(parts)]
    return not as_long and any(len(name) > 1 and parts[-len(name) :] == name for name in names)


def _value(source: Source) -> tuple[str, str]:
    return source.dimension, canonical_time(source.value) or source.value


def _has_content(expectation: Expectation) -> bool:
    return bool(expectation.partitions is not None or expectation.where or expectation.location)


def united(statements: Sequence[Expectation], explaining: Sequence[Source] = ()) -> Expected:
    """Unite the expectations of the reads of one dataset, or of its writes.

    :param statements: the expectations
    :param explaining: dates of the arguments; they are the origin of observed values
    """
    # If one path is the full dataset, all of the dataset is expected.
    is_partitioned = statements and all(e.partitions is not None for e in statements)
    partitions = frozenset(p for e in statements for p in e.partitions or ())
    return Expected(
        statements[0].kind if statements else Kind.INFERRED,
        partitions if is_partitioned else None,
        tuple(dict.fromkeys(d for e in statements for d in e.dimensions)),
        frozenset(e.location for e in statements if e.location),
        tuple(dict.fromkeys(e.where for e in statements))
        if all(e.where for e in statements)
        else (),
        any(e.is_glob for e in statements),
        (*(source for e in statements for source in e.sources), *explaining),
        _choices(statements),
    )


def _choices(
    statements: Sequence[Expectation],
) -> tuple[tuple[frozenset[Partition] | None, str], ...]:
    """List the partitions and the predicate of each expectation, as in :attr:`Expected.choices`.

    :return: () if none of them has a predicate, or if one of them is about the full dataset
    """
    choices = tuple(
        (None if e.partitions is None else frozenset(e.partitions), e.where) for e in statements
    )
    has_all = (None, "") in choices
    return choices if any(e.where for e in statements) and not has_all else ()


def _explaining(here: Sequence[Expectation], observed: Subset | None) -> list[Source]:
    """Find dates among the arguments that are values of observed partitions.

    A date that several columns make together is preferred to the same date in one column.

    :param here: the task's expectations of the reads, or of the writes, and those of either
    :param observed: the dataset's observed partitions; None if they are not known
    :return: the dates, each with the label of its column, or the labels joined by ``/``
    """
    inferred = [source for e in here if e.kind is Kind.INFERRED for source in e.sources]
    if observed is None or not inferred:
        return []
    dates = {time for source in inferred if (time := canonical_time(source.value))}
    together = {
        (day, "/".join(partition.as_dict()))
        for partition in observed.partitions
        if (day := date_of_columns(partition.values)) in dates
    }
    forms = {d.label: d.format for d in observed.dimensions}
    alone = {
        (time, label)
        for label, value in set(chain.from_iterable(p.values for p in observed.partitions))
        if (time := canonical_time(value, forms.get(label, ""))) in dates
    }
    labels: dict[str | None, str] = {}
    for time, label in (*sorted(together), *sorted(alone)):
        labels.setdefault(time, label)
    explaining = []
    for source in inferred:
        found = labels.get(canonical_time(source.value))
        if found is not None and source.dimension in ("", found):
            explaining.append(replace(source, dimension=found))
    return explaining
