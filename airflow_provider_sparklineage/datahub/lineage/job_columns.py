"""Lineage of columns in the aspect of a job: as much as one message holds.

DataHub's patches are divided where they are long; an aspect that is stored as a whole cannot be.
Each condition of an output is one ``FIELD_SET → FIELD_SET``: as long as its columns and those of
the output together, never their product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.lineage.columns import by_kind, grouped
from airflow_provider_sparklineage.datahub.lineage.transformations import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.datahub.lineage.feeding import Fed
    from airflow_provider_sparklineage.datahub.lineage.fields import Fields
    from airflow_provider_sparklineage.datahub.proposals import Json

_LARGEST = 1_000_000
"""Characters of all conditions, and of all columns. Kafka takes 5 MB as DataHub configures it, and
a message about a change has the aspect twice: as it was and as it is."""


class JobColumns:
    """Takes the lineage of one output after another, while there is room.

    Conditions have room of their own, because the aspects of datasets do not have them.
    """

    def __init__(self) -> None:
        self.left_out: set[str] = set()
        self._conditions = _Room()
        self._columns = _Room()

    def add(self, output: Fed, fields: Fields) -> None:
        """Take what an output is made of, or note its URN as left out."""
        has_conditions = self._conditions.take(_of_conditions(output, fields))
        has_columns = self._columns.take(_of_columns(output, fields))
        if not (has_conditions and has_columns):
            self.left_out.add(output.dataset.urn)

    def lineages(self) -> list[Json]:
        """Give all that was taken, each once: two outputs can be one dataset of DataHub."""
        return [*self._conditions.taken.values(), *self._columns.taken.values()]


class _Room:
    def __init__(self) -> None:
        self.taken: dict[tuple[str, ...], Json] = {}
        self._left = _LARGEST

    def take(self, lineages: Iterator[Json]) -> bool:
        """Take all of some lineages, or none of them."""
        found, left = {}, self._left
        for one in lineages:
            left -= _size(one)
            if left < 0:
                return False
            found[_key(one)] = one
        self.taken |= found
        self._left = left
        return True


def _of_conditions(output: Fed, fields: Fields) -> Iterator[Json]:
    own = output.dataset.name
    groups = by_kind(output.columns.conditions)
    every = [fields[(*own, column)] for column in _columns_of(output)] if groups else []
    for kind, group in groups.items() if every else ():
        yield _lineage(kind, [fields[source] for source in group], "FIELD_SET", every)


def _of_columns(output: Fed, fields: Fields) -> Iterator[Json]:
    own = output.dataset.name
    for column, sources in output.columns.fields.items():
        downstream = fields[(*own, column)]
        for operation, group in grouped(sources).items():
            upstreams = [urn for urn in map(fields.__getitem__, group) if urn != downstream]
            if upstreams:
                yield _lineage(operation, upstreams, "FIELD", [downstream])


def _columns_of(output: Fed) -> Iterable[str]:
    schema = lenient.items(lenient.at(output.dataset.facets, "schema", "fields"))
    names = filter(None, (lenient.text(field.get("name")) for field in schema))
    return dict.fromkeys((*names, *output.columns.fields))


def _lineage(operation: str, upstreams: list[str], of: str, downstreams: list[str]) -> Json:
    made: Json = {
        "upstreamType": "FIELD_SET",
        "upstreams": upstreams,
        "downstreamType": of,
        "downstreams": downstreams,
        "confidenceScore": 1.0,
    }
    return made | ({} if operation == UNKNOWN else {"transformOperation": operation})


def _key(one: Json) -> tuple[str, ...]:
    return (one.get("transformOperation", ""), *one["upstreams"], *one["downstreams"])


def _size(one: Json) -> int:
    return 200 + sum(map(len, one["upstreams"])) + sum(map(len, one["downstreams"]))
