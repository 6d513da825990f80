"""How lineage is written: which parts of it, and how much. Part of settings and of manifests."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model import globs
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from airflow_provider_sparklineage.model.datasets import DatasetName


DEFAULT_MAX_EVENT_BYTES = 4 * 1024 * 1024
"""One consumer refuses events of 5 MB, and Airflow adds facets of its own."""


class Limits(Frozen, frozen=True):
    """How many partitions one condition may name, or locations where no partitions are known.

    With 0 a condition names neither.
    """

    partitions: int = 100


DEFAULT_LIMITS = Limits()


class ColumnLineageForm(StrEnum):
    """How column lineage says what influences all columns of an output: filters, joins."""

    COMPACT = "compact"
    """Once."""
    LEGACY = "legacy"
    """With every column: for backends that do not know the compact form."""


class Representation(Frozen, frozen=True):
    """What facets have next to what they always have, and what they leave out.

    :param bare_partitions: an output's partitioning as the proposal's own facet as well
    :param explicit_lineage: which inputs feed which output, in the job facet ``lineage``
    :param max_event_bytes: what would make the event larger is dropped, and a degradation says so
    :param redact_literals: hide the literals of filters and descriptions
    """

    bare_partitions: bool = False
    explicit_lineage: bool = False
    max_event_bytes: int = DEFAULT_MAX_EVENT_BYTES
    redact_literals: bool = False


DEFAULT_REPRESENTATION = Representation()

DEFAULT_MAX_COLUMNS = 3000
"""In one event for Marquez, which takes 0.6 to 0.8 ms for each: half of the 5 s that are waited."""


class Leaving(Frozen, frozen=True):
    """What is done for a backend with an event when it leaves; what Airflow keeps is without it.

    :param backend: what the event is for; ``generic`` is anything that takes OpenLineage
    :param describe_datasets: outputs and their columns get descriptions where they have none
    :param max_columns: that one event may have, if the backend pays for each
    :param max_event_bytes: as :class:`Representation` has it; repairs can add some
    """

    backend: str = "generic"
    describe_datasets: bool = True
    max_columns: int = DEFAULT_MAX_COLUMNS
    max_event_bytes: int = DEFAULT_MAX_EVENT_BYTES


class Intermediates(Frozen, frozen=True):
    """Which intermediate datasets are left out of the outputs.

    :param dropped: globs of names as datasets print, ``<namespace>/<name>`` or the path of a local
        one; ``*`` crosses folders
    """

    dropped: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Intermediates:
        """Read ``keep``, ``drop``, or ``drop: s3://lake/tmp/*, /staging/*``.

        :raise ValueError: if it is none of those
        """
        word, colon, rest = text.strip().partition(":")
        named = tuple(glob.strip() for glob in rest.split(",") if glob.strip())
        kind = word.strip().lower()
        if kind == "keep" and not colon:
            return cls()
        if kind == "drop" and not colon:
            return cls(("*",))
        if kind == "drop" and named:
            return cls(tuple(re.sub("^s3[an]://", "s3://", glob) for glob in named))
        msg = f"{text!r} says neither keep nor drop"
        raise ValueError(msg)

    def __str__(self) -> str:
        if not self.dropped:
            return "keep"
        return "drop" if self.dropped == ("*",) else f"drop: {', '.join(self.dropped)}"

    def drop(self, dataset: DatasetName) -> bool:
        """Whether an intermediate dataset is to be left out."""
        return any(globs.compiled(glob).fullmatch(str(dataset)) for glob in self.dropped)


KEEP = Intermediates()
