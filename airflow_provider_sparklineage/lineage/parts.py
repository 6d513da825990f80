"""What of a RunEvent a task's lineage fills."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.facet_v2 import JobFacet, RunFacet


@dataclass(frozen=True)
class OpenLineageParts:
    """The parts of a RunEvent that a task's lineage fills."""

    inputs: list[InputDataset]
    outputs: list[OutputDataset]
    run_facets: dict[str, RunFacet] = field(default_factory=dict)
    job_facets: dict[str, JobFacet] = field(default_factory=dict)
