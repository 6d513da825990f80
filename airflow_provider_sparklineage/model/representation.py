"""The form in which lineage is written: its optional parts and limits, as settings give them."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model import globs
from airflow_provider_sparklineage.model.terms import Frozen, Side

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_provider_sparklineage.model.datasets import DatasetName


DEFAULT_MAX_EVENT_BYTES = 4 * 1024 * 1024
"""Less than the 5 MB at which one consumer refuses events, as Airflow adds facets of its own."""
MAX_KEPT_BYTES = 64 * 1024 * 1024
"""The most bytes of JSON of the event for XCom, archive and history. No backend gets this event, so
only the memory of its readers limits it: decoded, it takes about five times as much."""


class Limits(Frozen, frozen=True):
    """The limits of the conditions that describe the subset of a dataset.

    :param partitions: the most partitions that one condition may name, or the most locations if no
        partitions are known; with 0 a condition names neither
    """

    partitions: int = 100


DEFAULT_LIMITS = Limits()


class ColumnLineageForm(StrEnum):
    """The form in which column lineage writes the filters and joins that influence all columns."""

    COMPACT = "compact"
    """They are written once for the output."""
    LEGACY = "legacy"
    """They are repeated for every column, for backends that do not know the compact form."""


class MismatchPolicy(Frozen, frozen=True):
    """The consequence if a task accessed other partitions than expected.

    :param consequence: ``warn``, ``ignore`` or ``fail``
    :param of: the datasets that it is for: ``reads``, ``writes``, globs of datasets; empty for all
    """

    consequence: str = "warn"
    of: tuple[str, ...] = ()

    @classmethod
    def of_arguments(
        cls, on_partition_mismatch: str, check_partitions_of: str | Collection[str] | None
    ) -> MismatchPolicy:
        """Make the policy of an operator's arguments."""
        chosen = check_partitions_of
        return cls(
            on_partition_mismatch, (chosen,) if isinstance(chosen, str) else tuple(chosen or ())
        )

    @property
    def globs(self) -> list[str]:
        """The globs of datasets; ``["reads", "*/sales"]`` are the inputs that match the glob."""
        return [chosen for chosen in self.of if chosen not in _SIDES]

    def is_for(self, side: Side, dataset: DatasetName) -> bool:
        """Whether the policy is for the partitions that were read, or written, of a dataset."""
        sides = [chosen for chosen in self.of if chosen in _SIDES]
        if sides and f"{side}s" not in sides:
            return False
        names = self.globs
        return not names or any(globs.compiled(glob).fullmatch(str(dataset)) for glob in names)

    def severity(self, side: Side, dataset: DatasetName, *, is_exact: bool) -> str | None:
        """Give the severity of a mismatch in OpenLineage's terms: ``error`` or ``warn``.

        :param is_exact: whether a mismatch would be certain; only then does it fail the task
        :return: None if a mismatch has no consequence
        """
        if self.consequence == "ignore" or not self.is_for(side, dataset):
            return None
        return "error" if self.consequence == "fail" and is_exact else "warn"


_SIDES = frozenset(f"{side}s" for side in Side)


class Representation(Frozen, frozen=True):
    """The parts that an event has or leaves out.

    :param bare_partitions: whether an output's partitioning is also written as the facet of
        OpenLineage's partitioning proposal
    :param explicit_lineage: whether the job facet ``lineage`` says which inputs feed which output
    :param max_event_bytes: the most bytes of the event for XCom and archive. Details of a larger
        event are dropped, and a degradation reports it. What is sent has its own limit
        (:class:`Adaptation`)
    :param redact_literals: whether the literals in filters and descriptions are hidden
    :param mismatches: gives the severity of the partition checks
    """

    bare_partitions: bool = False
    explicit_lineage: bool = False
    max_event_bytes: int = MAX_KEPT_BYTES
    redact_literals: bool = False
    mismatches: MismatchPolicy = MismatchPolicy()


DEFAULT_REPRESENTATION = Representation()

DEFAULT_MAX_COLUMNS = 3000
"""The most columns of an event for Marquez: 0.6 to 0.8 ms each are half of its 5 s timeout."""


class Answered(Frozen, frozen=True):
    """The time in which a backend answered the last event of a task, for the limit of the next.

    :param columns: number of columns of the event, as ``max_columns`` counts them
    :param datasets: number of inputs and outputs of the event
    :param limit: the most columns that the event could have
    :param is_whole: whether no column was left out of the event
    :param slow: number of columns that took too long in an earlier event, and a little more for
        each answer in time since then; 0 if none did
    :param seconds: time until the backend answered, or until the client gave up; None if the
        process that sent the event was ended before
    """

    columns: int
    datasets: int
    limit: int
    is_whole: bool
    slow: int = 0
    seconds: float | None = None


class Adaptation(Frozen, frozen=True):
    """The adaptation of an event to a backend; XCom and archive have the event without adaptation.

    :param backend: the backend's name; ``generic`` is any backend that accepts OpenLineage
    :param describe_datasets: whether outputs and columns without a description get a description
    :param max_columns: the most columns of one event, because a backend needs time for each column;
        with ``is_timed`` only of the first event
    :param is_timed: whether the most columns of further events follow the backend's time
    :param answered: the time for the task's last event; None if it was not measured
    :param max_event_bytes: the most bytes of the event that is sent
    :param airflow_url: URL of Airflow's pages, to which the descriptions lead; empty if it is not
        known: then they lead nowhere
    :param has_history: whether Airflow has a page on datasets, because there is a history
    """

    backend: str = "generic"
    describe_datasets: bool = True
    max_columns: int = DEFAULT_MAX_COLUMNS
    max_event_bytes: int = DEFAULT_MAX_EVENT_BYTES
    is_timed: bool = False
    answered: Answered | None = None
    airflow_url: str = ""
    has_history: bool = False


class Intermediates(Frozen, frozen=True):
    """The intermediate datasets that are left out of the outputs.

    :param dropped: globs of their printed names: ``<namespace>/<name>``, or the path of a local
        dataset; ``*`` also matches slashes
    """

    dropped: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Intermediates:
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
