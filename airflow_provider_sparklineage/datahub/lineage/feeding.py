"""Which datasets feed an output, and which columns: read once for all aspects that have it.

The inputs and outputs of an event do not show who feeds whom. Who is named for an output (by its
column lineage, or by the job's ``lineage`` facet) feeds it. Where nobody is, all inputs feed the
only output, and the only input feeds all outputs; nothing is made up for any other event, whose
edges DataHub has through the job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.lineage.columns import columns
from airflow_provider_sparklineage.datahub.naming.identities import is_named
from airflow_provider_sparklineage.event.document import COLUMNS_KEY, LINEAGE_KEY, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.lineage.columns import Columns, Sources
    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.subject import Dataset, Subject
    from airflow_provider_sparklineage.model.datasets import DatasetName


class Fed(NamedTuple):
    """An output with what it is made of.

    :param columns: without filters, joins and groupings, if those are not to be part of lineage
    :param conditions: what influences all of it, in any case
    :param sources: URNs of the datasets that feed it, without itself
    :param is_copy: whether it is another dataset as it is
    """

    dataset: Dataset
    columns: Columns
    conditions: Sources
    sources: tuple[str, ...]
    is_copy: bool


def fed(subject: Subject) -> Iterator[Fed]:
    """Read what the outputs are made of, one after another: all of them can take much memory."""
    entries = _entries(subject)
    return (_fed(subject, output, entries.get(output.name, {})) for output in subject.outputs)


def _fed(subject: Subject, output: Dataset, entry: Json) -> Fed:
    entry = entry or lenient.mapping(output.facets.get(LINEAGE_KEY))
    known = columns(lenient.mapping(output.facets.get(COLUMNS_KEY)), entry)
    urns = dict.fromkeys(map(subject.dataset, _sources(subject, known, entry)))
    sources = tuple(urn for urn in urns if urn != output.urn)
    return Fed(
        dataset=output,
        columns=known if subject.how.indirect else known.direct(),
        conditions=known.conditions,
        sources=sources,
        is_copy=len(sources) == 1 and known.is_copy() and _is_whole(output, known),
    )


def _entries(subject: Subject) -> dict[DatasetName, Json]:
    """Give the entries of the job's facet ``lineage`` by the outputs that they are of."""
    return {
        name: entry
        for entry in lenient.items(lenient.at(subject.job_facets, LINEAGE_KEY, "entries"))
        if (name := _name(entry))
    }


def _sources(subject: Subject, known: Columns, entry: Json) -> dict[DatasetName, None]:
    named = dict.fromkeys(known.datasets())
    if isinstance(entry.get("inputs"), list):
        stated = filter(None, map(_name, lenient.items(entry["inputs"])))
        return dict.fromkeys((*stated, *named))
    is_plain = len(subject.outputs) == 1 or len(subject.inputs) == 1
    if is_plain and subject.state == "COMPLETE":
        return dict.fromkeys((*(one.name for one in subject.inputs), *named))
    return named


def _name(entry: Json) -> DatasetName | None:
    return name_of(entry) if entry.get("type") == "DATASET" and is_named(entry) else None


def _is_whole(output: Dataset, known: Columns) -> bool:
    """Whether each column of the output's schema is known to come from somewhere."""
    fields = lenient.items(lenient.at(output.facets, "schema", "fields"))
    return {lenient.text(field.get("name")) for field in fields} <= known.fields.keys()
