"""How lineage is written: which parts, and how much; these are values of settings and manifests."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model import globs
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from airflow_provider_sparklineage.model.datasets import DatasetName


DEFAULT_MAX_EVENT_BYTES = 4 * 1024 * 1024
"""Less than the 5 MB at which one consumer refuses events, as Airflow adds facets of its own."""


class Limits(Frozen, frozen=True):
    """The limits of conditions.

    :param partitions: how many partitions one condition may name, or how many locations where no
        partitions are known; with 0 a condition names neither
    """

    partitions: int = 100


DEFAULT_LIMITS = Limits()


class ColumnLineageForm(StrEnum):
    """How column lineage writes the filters and joins that influence all columns of an output."""

    COMPACT = "compact"
    """Once for the output."""
    LEGACY = "legacy"
    """Again for every column: for backends that do not know the compact form."""


class Representation(Frozen, frozen=True):
    """The optional parts of facets, and the parts that they leave out.

    :param bare_partitions: whether an output's partitioning is also written as the facet of
        OpenLineage's partitioning proposal
    :param explicit_lineage: whether the job facet ``lineage`` says which inputs feed which output
    :param max_event_bytes: bytes of an event; details beyond are dropped, and a degradation says so
    :param redact_literals: whether the literals of filters and descriptions are hidden
    """

    bare_partitions: bool = False
    explicit_lineage: bool = False
    max_event_bytes: int = DEFAULT_MAX_EVENT_BYTES
    redact_literals: bool = False


DEFAULT_REPRESENTATION = Representation()

DEFAULT_MAX_COLUMNS = 3000
"""Columns of one event for Marquez, which needs 0.6 to 0.8 ms for each: half of the 5 s timeout."""


class Leaving(Frozen, frozen=True):
    """How an event is adapted for a backend when it is sent; the event that Airflow keeps is not.

    :param backend: the backend's name; ``generic`` is any that takes OpenLineage
    :param describe_datasets: whether outputs and their columns without a description get one
    :param max_columns: how many columns one event may have, if each costs the backend time
    :param max_event_bytes: as in :class:`Representation`; checked again, as repairs can add bytes
    """

    backend: str = "generic"
    describe_datasets: bool = True
    max_columns: int = DEFAULT_MAX_COLUMNS
    max_event_bytes: int = DEFAULT_MAX_EVENT_BYTES


class Intermediates(Frozen, frozen=True):
    """The intermediate datasets that are left out of the outputs.

    :param dropped: globs of names as datasets print: ``<namespace>/<name>``, or the path of a local
        dataset; ``*`` crosses folders
    """

    dropped: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Intermediates:
        """Read ``keep``, ``drop``, or ``drop: s3://lake/tmp/*, /staging/*``.

        :raise ValueError: if the text has another form
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
        """Whether an intermediate dataset is left out of the outputs."""
        return any(globs.compiled(glob).fullmatch(str(dataset)) for glob in self.dropped)


KEEP = Intermediates()
