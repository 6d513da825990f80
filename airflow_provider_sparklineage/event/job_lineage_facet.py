"""OpenLineage's explicit lineage of a job: which inputs feed which output, and which do not.

The inputs and outputs of a task that makes C of A and D of B say nothing of who feeds whom, and a
consumer takes it for four edges. The job facet ``lineage`` (``LineageFacet.json`` 1-0-0) has an
entry for each output; a dataset-level source without a field feeds the output, one with a field
influences all of it, and an entry without sources says that there are none.

The classes are our own: the specification calls the facet experimental, and not every
``openlineage-python`` that this package runs with has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attrs
from openlineage.client.facet_v2 import JobFacet
from openlineage.client.utils import RedactMixin

from airflow_provider_sparklineage.event.producer import producer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.lineage.columns import Edges
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset

LINEAGE_KEY = "lineage"


@attrs.define
class LineageTransformation(RedactMixin):
    """What is done with a source on the way."""

    _skip_redact: ClassVar[list[str]] = ["type", "subtype", "masking"]

    type: str
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None


@attrs.define
class LineageInput(RedactMixin):
    """A source: a dataset, or a column of it."""

    _skip_redact: ClassVar[list[str]] = ["namespace", "name", "type", "field"]

    namespace: str
    name: str
    type: str = "DATASET"
    field: str | None = None
    transformations: list[LineageTransformation] | None = None


@attrs.define
class LineageField(RedactMixin):
    """The sources of one column."""

    inputs: list[LineageInput]


@attrs.define
class LineageEntry(RedactMixin):
    """The sources of one output."""

    _skip_redact: ClassVar[list[str]] = ["namespace", "name", "type"]

    namespace: str
    name: str
    type: str = "DATASET"
    inputs: list[LineageInput] | None = None
    fields: dict[str, LineageField] | None = None


@attrs.define
class LineageJobFacet(JobFacet):
    """Job facet ``lineage``."""

    entries: list[LineageEntry] = attrs.field(factory=list)

    @staticmethod
    def _get_schema() -> str:
        return "https://openlineage.io/spec/facets/1-0-0/LineageFacet.json#/$defs/LineageJobFacet"


def lineage_facet(outputs: Iterable[LineageDataset]) -> LineageJobFacet | None:
    """Make the facet of the outputs whose sources are known; None if there are none."""
    entries = [_entry(output) for output in outputs if output.sources is not None]
    return LineageJobFacet(entries=entries, producer=producer()) if entries else None


def _entry(output: LineageDataset) -> LineageEntry:
    columns = output.columns
    datasets = [LineageInput(s.namespace, s.name) for s in sorted(output.sources or ())]
    influences = _inputs(columns.dataset) if columns else []
    fields = {
        name: LineageField(_inputs(edges))
        for name, edges in sorted(columns.fields.items() if columns else ())
        if edges
    }
    namespace, name = output.name
    return LineageEntry(namespace, name, inputs=[*datasets, *influences], fields=fields or None)


def _inputs(edges: Edges) -> list[LineageInput]:
    return [
        LineageInput(
            column.dataset.namespace,
            column.dataset.name,
            field=column.field,
            transformations=[
                LineageTransformation(t.type, t.subtype, t.description, t.masking)
                for t in edges[column]
                if t.type is not None
            ],
        )
        for column in sorted(edges)
    ]
