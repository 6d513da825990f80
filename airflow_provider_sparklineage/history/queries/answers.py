"""The types of the queries' answers; the commands print them as JSON for programs."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from airflow_provider_sparklineage.model.partitioning import split_folder
from airflow_provider_sparklineage.model.texts import some
from airflow_provider_sparklineage.model.timestamps import start_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from airflow_provider_sparklineage.model.datasets import DatasetName

_SHOWN = 5  # most names in a sentence


class Dataset(Struct, frozen=True, order=True):
    """A dataset, as OpenLineage names it."""

    namespace: str
    name: str


class Run(Struct, frozen=True):
    """A run, and when it ended."""

    run_id: str
    job: str | None = None
    ended: datetime | None = None


class Transformation(Struct, frozen=True, order=True):
    """A transformation of a column, in the words of OpenLineage's facet columnLineage."""

    type: str = ""
    subtype: str = ""
    masking: bool = False
    description: str = ""


class Hop(Struct, frozen=True):
    """A version of a partition of which the question's subject was made, or one made of it.

    :param depth: number of runs between the version and the subject of the question
    :param partition: values by dimension; null for the whole dataset, or if the part is not known
    :param column: null for all columns, or if the column is not known
    :param run: the run that wrote the version; null if no such run is known
    :param transformations: of this column on the way to the hop one depth nearer, or from it
    :param is_certain: whether nothing of this hop is assumed
    :param via: run_ids of the versions one depth nearer to the subject of the question
    :param note: a remark for people; null if there is none
    """

    depth: int
    dataset: Dataset
    partition: dict[str, str] | None
    column: str | None
    run: Run | None
    transformations: tuple[Transformation, ...] = ()
    is_certain: bool = True
    via: tuple[str, ...] = ()
    note: str | None = None


class Cause(Struct, frozen=True):
    """A change that came after a run had read the data.

    :param at: when the change was written
    :param how: the mode of the write: overwrite, append, truncate, …
    :param is_first: whether no earlier write of it is known
    """

    dataset: Dataset
    partition: dict[str, str] | None
    run: Run
    at: datetime
    how: str
    is_first: bool = False


class Stale(Struct, frozen=True):
    """A version that is there, and whose sources have changed since it was made.

    :param run: the run that wrote the version
    :param is_direct: whether this run read the changed data itself; else it read a stale version
    :param cause: the first change that was missed, by this run or by the writer of the stale
        version
    :param is_certain: whether nothing of this is assumed
    """

    dataset: Dataset
    partition: dict[str, str] | None
    run: Run
    is_direct: bool
    cause: Cause
    is_certain: bool = True


class Reason(Struct, frozen=True):
    """A reason to repeat a run: data that the run read, and the change of this data.

    :param columns: ``price → amount``: the columns through which the data goes, if they are known
    :param cause: the change that the run missed; null if the data is the subject of the question,
        or is made again by the plan
    :param text: the reason as a sentence
    :param is_direct: whether the run read this data itself; else it read a version made from it
    """

    dataset: Dataset
    partition: dict[str, str] | None
    columns: tuple[str, ...] = ()
    cause: Cause | None = None
    text: str = ""
    is_direct: bool = True


class Step(Struct, frozen=True):
    """A task instance to clear.

    :param run_id: its latest run; empty if it has not run
    :param ended: the end of that run
    :param wave: number of the group in which it is cleared; each group reads data that earlier
        groups write
    :param namespace: OpenLineage's namespace of its job, which tells two Airflows apart
    :param is_certain: whether nothing of this is assumed
    :param runs: ids of the runs whose versions it makes again
    """

    dag_id: str
    task_id: str
    dag_run_id: str
    map_index: int
    run_id: str
    ended: datetime | None
    wave: int
    reasons: tuple[Reason, ...] = ()
    namespace: str = ""
    is_certain: bool = True
    runs: tuple[str, ...] = ()


class ByHand(Struct, frozen=True):
    """A run that a person has to repeat, because Airflow did not start it.

    :param wave: number of its group, as in the steps of the plan
    :param is_certain: whether nothing of this is assumed
    """

    job: str | None
    run_id: str
    ended: datetime | None
    wave: int
    reasons: tuple[Reason, ...] = ()
    is_certain: bool = True


class Plan(Struct, frozen=True):
    """The task instances to clear, in the order of clearing, and the runs to start by hand."""

    steps: tuple[Step, ...] = ()
    by_hand: tuple[ByHand, ...] = ()

    def without(self, runs: Iterable[str]) -> set[str]:
        """Give those of some runs, by their ids, whose versions this plan does not make again."""
        covered = {run_id for step in self.steps for run_id in step.runs}
        return set(runs) - covered - {one.run_id for one in self.by_hand}


class Unjudged(Struct, frozen=True):
    """Datasets, runs, partitions, dates or values about which an answer says nothing.

    ==================  ============================================================================
    ``no_writer``       datasets are read, and no known run writes them
    ``no_reads``        datasets were written by runs of which no read is known
    ``no_writes``       runs read the data, and no write of theirs is known
    ``unended``         runs read the data, and failed or have not ended
    ``unknown_part``    parts that are not known were read or written
    ``failed_writes``   writes failed or have not ended, and nobody wrote the same again
    ``losses``          the events of runs state that something is missing in them
    ``no_dates``        runs have no dates, but others of the dataset have
    ``no_axis``         partitions have dimensions or values unlike the others
    ``no_rule``         partitions follow from no date, or by no rule from others
    ``no_step``         dates have no regular distance
    ``left_out``        dates without a run are too many for a schedule, or runs too many to compare
    ``rare``            values of a dimension are written on too few dates
    ``few_runs``        runs are too few to be compared
    ``no_columns``      runs have no column lineage
    ==================  ============================================================================

    :param reason: a word of the table above
    :param count: number of these datasets, runs, partitions, dates or values
    :param text: the reason as a sentence
    :param job: the task; empty if the reason is not one task's
    :param names: up to five of the datasets or tasks
    """

    reason: str
    count: int
    text: str
    job: str = ""
    names: tuple[str, ...] = ()

    @classmethod
    def unknown_part(cls, runs: int) -> Unjudged:
        """Make the answer for runs whose written partitions are not known."""
        text = f"{_counted(runs, 'run')} wrote an unknown part of it."
        return cls("unknown_part", runs, text)

    @classmethod
    def no_dates(cls, runs: int, job: str) -> Unjudged:
        """Make the answer for runs without dates, or with other dates than most."""
        text = f"{_counted(runs, 'run')} of {job} {'has' if runs == 1 else 'have'} no usual dates."
        return cls("no_dates", runs, text, job)

    @classmethod
    def no_axis(cls, cells: Sequence[str]) -> Unjudged:
        """Make the answer for partitions that are on no axis, given their canonical texts."""
        count = len(cells)
        text = f"{_counted(count, 'partition')} {_be(count)} unlike the others: {cells[0]}"
        return cls("no_axis", count, f"{text}{', …' if count > 1 else '.'}")

    @classmethod
    def no_rule(cls, runs: int, job: str = "") -> Unjudged:
        """Make the answer for the runs of a task, or of all tasks, without a rule of dates."""
        of = f"that {job} writes " if job else ""
        return cls("no_rule", runs, f"The partitions {of}follow from no date.", job)

    @classmethod
    def no_step(cls, dates: int, job: str) -> Unjudged:
        """Make the answer for the dates of a task's runs, or of partitions if ``job`` is empty."""
        of = f"{dates:,} dates of {job or 'its partitions'}"
        return cls("no_step", dates, f"{of} have no regular distance: none is known between.", job)

    @classmethod
    def in_progress(cls, partitions: int, job: str) -> Unjudged:
        """Make the answer for partitions that DAG runs in progress have not written yet."""
        text = f"{_counted(partitions, 'partition')} may still come from {job}"
        return cls("in_progress", partitions, f"{text}: its DAG run has not ended, it seems.", job)

    @classmethod
    def left_out(cls, first: int, last: int, dates: int, unit: str, job: str) -> Unjudged:
        """Make the answer for dates that are too many to be without a run.

        :param first: number of the date before them
        :param last: number of the date after them
        :param dates: number of these dates
        :param unit: unit of the dates
        """
        ends = (start_of(unit, n).isoformat(" ", "minutes") for n in (first, last))
        text = f"{dates:,} dates between {' and '.join(ends)} have no run: too many to list."
        return cls("left_out", dates, text, job)

    @classmethod
    def rare(cls, values: int, labels: Iterable[str], job: str) -> Unjudged:
        """Make the answer for values that are not written regularly.

        :param values: number of values, or of combinations of several dimensions' values
        :param labels: the dimensions
        """
        text = f"{_counted(values, 'value')} of {', '.join(labels)} {_be(values)} not written"
        return cls("rare", values, f"{text} regularly.", job)

    @classmethod
    def of_datasets(
        cls,
        reason: str,
        text: str,
        datasets: Iterable[DatasetName],
        names: Mapping[DatasetName, str],
    ) -> Unjudged:
        """Make the answer for datasets.

        :param text: the sentence, as :func:`_sentence` takes it
        :param names: the names of the store's datasets in sentences
        """
        named = sorted(set(datasets))
        called = [names.get(one, str(one)) for one in named]
        text = _sentence(text, len(named), "dataset", called)
        return cls(reason, len(named), text, names=tuple(map(str, named[:_SHOWN])))

    @classmethod
    def of_runs(cls, reason: str, text: str, jobs: Collection[str]) -> Unjudged:
        """Make the answer for runs.

        :param text: the sentence, as :func:`_sentence` takes it
        :param jobs: the name of the job of each run
        """
        named = sorted(set(jobs))
        text = _sentence(text, len(jobs), "run", named)
        return cls(reason, len(jobs), text, names=tuple(named[:_SHOWN]))


def _sentence(text: str, count: int, noun: str, names: Sequence[str]) -> str:
    """Fill in a sentence, and end it with the first names.

    :param text: the sentence, with ``{them}``, ``{are}`` and ``{have}``
    :param count: number of the things
    :param noun: name of one thing
    """
    verbs = {"are": _be(count), "have": "has" if count == 1 else "have"}
    filled = text.format(them=_counted(count, noun), **verbs)
    return f"{filled}: {some(names, _SHOWN)}."


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


class Impact(Struct, frozen=True):
    """The versions made from a partition or column, and the plan to make these versions again.

    :param unjudged: runs that may have made something of it, too
    """

    hops: tuple[Hop, ...] = ()
    plan: Plan = Plan()
    unjudged: tuple[Unjudged, ...] = ()


def at_utc(time: datetime) -> datetime:
    """Add the zone UTC to a time from the tables, which have times without a zone."""
    return time.replace(tzinfo=UTC)


def at_utc_if_known(time: datetime | None) -> datetime | None:
    """Add the zone UTC to a time from the tables; None if the time is None."""
    return None if time is None else at_utc(time)


def of_tables(time: datetime | None) -> datetime | None:
    """Convert a time to UTC and drop its zone, as times in the tables have none.

    A time without a zone is UTC already, and is returned unchanged; None gives None.
    """
    return time.astimezone(UTC).replace(tzinfo=None) if time and time.tzinfo else time


_folder = lru_cache(maxsize=65536)(split_folder)  # the same days and regions, again and again


def values_of(cell: str | None) -> dict[str, str] | None:
    """Give the values of a partition by dimension; None if ``cell`` is None.

    :param cell: canonical text of the partition: ``dt=2024-10-15/region=eu``
    """
    return None if cell is None else dict(filter(None, map(_folder, cell.split("/"))))


def transformation(edge: Mapping[str, Any]) -> tuple[Transformation, ...]:
    """Give the transformation of a row of column lineage, as a tuple of one.

    :param edge: the row, with type, subtype, masking and description
    :return: () if the row has neither a type nor a subtype
    """
    if edge["type"] is None and edge["subtype"] is None:
        return ()
    texts = (edge["type"] or "", edge["subtype"] or "")
    return (Transformation(*texts, bool(edge["masking"]), edge["description"] or ""),)
