"""Descriptions of a merged event for people: of its run, its datasets, and its outputs' columns.

They are for backends that show the description of a job, a dataset or a column before all else. An
access that was not seen (a declared one, one of the last run, a failed one) gets no description.
Marquez makes a new version of a dataset if a description of a column changes. So a column's
description is the same in each run of the same job: it contains no date, and no other number that
is likely to belong to one run.

:func:`described` is a step that describes the job, datasets and columns that have no description of
their own. Marquez keeps one description of each: that of the last event that names it. An event
without a description deletes it, also a START, a failure, or the event of a task that only reads.
So each dataset of an event gets a description; a dataset that this run has not accessed (yet) gets
that of the last run that accessed it, which is still true. A dataset that a task before this one
wrote keeps the writer's description next to the reader's. Airflow replaces the job's description by
the user's own; :mod:`airflow_provider_sparklineage.operators.attempt.publish` joins the two.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.event.document import replaced
from airflow_provider_sparklineage.event.model import name_of
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.model.datasets import short_names
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.pages import dataset_page, with_line
from airflow_provider_sparklineage.model.producer import facet
from airflow_provider_sparklineage.model.terms import NOT_KNOWN
from airflow_provider_sparklineage.model.texts import some, truncated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.event.model import Dataset, InputField, Transformation
    from airflow_provider_sparklineage.model.datasets import DatasetName


# --- the texts of an event ------------------------------------------------------------------------


MAX_OF_RUN = 1000
MAX_OF_DATASET = 500
MAX_OF_COLUMN = 200
_MAX_OF_COLUMNS = 500
"""Characters for all columns in the description of a run."""
_MAX_EXPRESSION = 120
_MAX_DATASETS = 6
_MAX_SOURCES = 4
_UNMATCHED = {
    "": "nothing was compared",
    "undeclared": "none, as no partitions were expected",
    "unobserved": "not known, as not all accesses were seen",
}
"""Why there is no mismatch, by the status of a partition check that is not ``matched``."""
_INCOMPLETE = frozenset(str(code) for code in DegradationCode if code.needs_attention)


class Described(NamedTuple):
    """The description of a dataset, and those of the columns that have one.

    :param columns: the descriptions of columns, by the column's name
    :param page: URL of the dataset in Airflow, or of the only partition of it that was accessed;
        empty if it is not known
    """

    text: str
    columns: dict[str, str]
    page: str = ""


class Descriptions:
    """The descriptions of an event.

    :param airflow_url: URL of Airflow's pages, to which the datasets' descriptions lead; empty for
        none
    """

    def __init__(self, event: Event, airflow_url: str = "") -> None:
        self._event = model.read_document(event)
        self._airflow_url = airflow_url
        self._accesses = self._event.accesses
        self._entries = {
            (side, entry.dataset.dataset_name): entry
            for side in Side
            for entry in self._event.check.of_side(side)
        }

    @cached_property
    def _names(self) -> dict[DatasetName, str]:
        datasets = self._event.datasets
        sources = (one for dataset in datasets for one in dataset.column_lineage.sources)
        return short_names([one.dataset_name for one in (*datasets, *sources)])

    def of_run(self) -> str:
        """Describe the run: accesses, unexpected and missing partitions, columns of outputs.

        E.g. ``2024-05-07 01:02 UTC: wrote …; read …. In revenue: total = sum(amount), from …``.
        """
        phrases = [
            f"{verb} {some(parts, _MAX_DATASETS)}"
            for side, verb, is_removal in (
                *((Side.WRITE, "wrote", False), (Side.WRITE, "removed from", True)),
                (Side.READ, "read", False),
            )
            if (parts := self._parts(side, is_removal=is_removal))
        ] or ["no read or write was seen"]
        phrases += [f"{key}: {some(parts, _MAX_DATASETS)}" for key, parts in self._mismatches()]
        if any(entry.code in _INCOMPLETE for entry in self._event.capture.degradations or ()):
            phrases.append("there may be more (sparkLineage_capture has the reason)")
        text = f"{self._when}: {'; '.join(phrases)}. {self._every_column()}"
        return truncated(text.rstrip(), MAX_OF_RUN)

    def of_log(self) -> list[str]:
        """Give the lines of a task's log: the data that was read and written, and the mismatches.

        E.g. ``read: orders dt=2024-05-06``, ``wrote: revenue dt=2024-05-06``, ``mismatched: none``.
        """
        removed = self._parts(Side.WRITE, is_removal=True)
        wrote = self._parts(Side.WRITE, is_removal=False)
        wrote += [f"{one} (removed)" for one in removed]
        mismatches = [f"{key} {some(parts, _MAX_DATASETS)}" for key, parts in self._mismatches()]
        unmatched = _UNMATCHED.get(self._event.check.status or "", "none")
        lines = {
            "read": some(self._parts(Side.READ, is_removal=False), _MAX_DATASETS) or "nothing seen",
            "wrote": some(wrote, _MAX_DATASETS) or "nothing seen",
            "mismatched": "; ".join(mismatches) or unmatched,
        }
        return [truncated(f"{key}: {text}", MAX_OF_DATASET) for key, text in lines.items()]

    def _parts(self, side: Side, *, is_removal: bool) -> list[str]:
        """List the datasets that were accessed, each with the part of it.

        :param is_removal: whether to list those of which the run only removed something
        """
        return [
            self._with_part(side, name)
            for name in self._known[side]
            if (self._accessed(side, name) == "removed") is is_removal
        ]

    def _mismatches(self) -> Iterator[tuple[str, list[str]]]:
        for key in ("unexpected", "missing"):
            parts = [
                f"{self._names[name]} {extent.summary}"
                for (_, name), entry in self._entries.items()
                if (extent := getattr(entry, key)) and name in self._names
            ]
            if parts:
                yield key, parts

    def _every_column(self) -> str:
        """Describe the outputs' columns, as many as fit into ``_MAX_OF_COLUMNS`` characters."""
        room, texts = _MAX_OF_COLUMNS, []
        for name, output in self._known[Side.WRITE].items():
            columns = [f"{column} {text}" for column, text in self._columns(output).items()]
            columns.sort(key=lambda text: " = " not in text)  # copied columns come last
            ends = accumulate(map(len, columns))
            count = sum(1 for end in ends if end <= room)
            if count:
                more = f" and {len(columns) - count} more" if count < len(columns) else ""
                texts.append(f"In {self._names[name]}: {' · '.join(columns[:count])}{more}.")
            room -= sum(map(len, columns))
            if room <= 0:
                break
        return " ".join(texts)

    # --- datasets ---------------------------------------------------------------------------------

    def of_datasets(self) -> dict[tuple[Side, DatasetName], Described]:
        """Describe the datasets that the run has read or written, by side and name."""
        read = {
            (Side.READ, name): Described(
                self._sentence(Side.READ, name, "read"), {}, self._page(Side.READ, name)
            )
            for name in self._known[Side.READ]
        }
        written = {
            (Side.WRITE, name): Described(
                self._output(output), self._columns(output), self._page(Side.WRITE, name)
            )
            for name, output in self._known[Side.WRITE].items()
        }
        return read | written

    @cached_property
    def _known(self) -> dict[Side, dict[DatasetName, Dataset]]:
        """The datasets whose access by this run was seen and did not fail, by side and name."""
        known: dict[Side, dict[DatasetName, Dataset]] = {Side.READ: {}, Side.WRITE: {}}
        for side, datasets in ((Side.READ, self._event.inputs), (Side.WRITE, self._event.outputs)):
            for dataset in datasets or ():
                entry = self._accesses.get((side, dataset.dataset_name))
                if entry is not None and not entry.failed and entry.witness != "declared":
                    known[side][dataset.dataset_name] = dataset
        return known

    def _output(self, output: Dataset) -> str:
        is_removal = self._accessed(Side.WRITE, output.dataset_name) == "removed"
        verb = "removed" if is_removal else "written"
        text = self._sentence(Side.WRITE, output.dataset_name, verb)
        every = {one.dataset_name for one in output.column_lineage.sources}
        sources = self._known[Side.READ].keys() & every
        read = [self._with_part(Side.READ, name) for name in sorted(sources)]
        if read:
            text += f"; from {some(read, _MAX_DATASETS)}"
        return truncated(text, MAX_OF_DATASET)

    def _sentence(self, side: Side, name: DatasetName, verb: str) -> str:
        """Describe an access, e.g. ``dt=2024-05-06 written by shop.revenue, 2024-05-07 01:02 UTC``.

        Without a part the sentence begins with the verb: ``Written by …``. If nobody knows which
        part was accessed, it says so at the end.

        :param side: whether the run read or wrote the dataset
        :param name: the dataset
        :param verb: ``read``, ``written`` or ``removed``
        """
        part_of = self._part(side, name)
        by = f"by {self._event.job.name}, {self._when}"
        if self._accessed(side, name) == "unknown":
            return f"{verb.capitalize()} {by}; {NOT_KNOWN}"
        return f"{part_of} {verb} {by}" if part_of else f"{verb.capitalize()} {by}"

    @cached_property
    def _when(self) -> str:
        at = datetime.fromisoformat(self._event.eventTime or "").astimezone(UTC)
        failed = " (the run failed)" if self._event.eventType == "FAIL" else ""
        return f"{at:%Y-%m-%d %H:%M} UTC{failed}"

    def _with_part(self, side: Side, name: DatasetName) -> str:
        is_unknown = self._accessed(side, name) == "unknown"
        part_of = f"({NOT_KNOWN})" if is_unknown else self._part(side, name)
        return f"{self._names[name]} {part_of}".rstrip()

    def _accessed(self, side: Side, name: DatasetName) -> str:
        entry = self._entries.get((side, name)) or self._accesses.get((side, name))
        return (entry and entry.accessed) or ""

    def _part(self, side: Side, name: DatasetName) -> str:
        """Name the accessed part of a dataset; empty if it was all of it, or is not listed.

        :param side: whether the part was read or written
        """
        entry = self._entries.get((side, name))
        return "" if entry is None or entry.accessed == "all" else entry.part

    def _page(self, side: Side, name: DatasetName) -> str:
        """Give the URL of a dataset in Airflow, or of its only accessed partition."""
        if not self._airflow_url or self._has_other_names:
            return ""
        entry = self._entries.get((side, name))
        observed = (entry and entry.observed) or model.Counted()
        partition = observed.first if observed.count == 1 else None
        return dataset_page(self._airflow_url, name, partition or "")

    @cached_property
    def _has_other_names(self) -> bool:
        """Whether datasets may be called otherwise in the backend than on Airflow's page."""
        capture = self._event.capture
        codes = {one.code for one in capture.degradations or ()}
        codes |= {*(capture.degradationCounts or ())}
        return str(DegradationCode.BACKEND_REPAIRED) in codes

    # --- columns ----------------------------------------------------------------------------------

    def _columns(self, output: Dataset) -> dict[str, str]:
        partitioned = {
            column: dimension.transform or "identity"
            for dimension in output.partitions.dimensions or ()
            for column in dimension.fields or ()
        }
        sources = output.column_lineage.fields or {}
        texts = {}
        for name in (column.name for column in output.columns):
            parts = [_partition_column(partitioned[name])] if name in partitioned else []
            if name in sources:
                of_column = sources[name].inputFields or []
                parts.append(self._made_of(of_column, with_expression=not parts))
            if parts:
                texts[name] = truncated(", ".join(filter(None, parts)), MAX_OF_COLUMN)
        return texts

    def _made_of(self, sources: list[InputField], *, with_expression: bool) -> str:
        """Describe the sources of a column, e.g. ``= round(avg(visib), 1), from weather.visib``.

        :param with_expression: whether the text begins with the expression, if that is known
        """
        direct = [one for one in sources if any(map(_is_direct, one.transformations or ()))]
        columns = [f"{self._names[one.dataset_name]}.{one.field}" for one in direct or sources]
        origin = f"{'from' if direct else 'depends on'} {some(columns, _MAX_SOURCES)}"
        expression = _expression(direct or sources) if with_expression else ""
        return f"= {expression}, {origin}" if expression else origin


def _partition_column(transform: str) -> str:
    return "partition column" if transform == "identity" else f"partition column by {transform}"


def _is_direct(transformation: Transformation) -> bool:
    return transformation.type == "DIRECT"


def _expression(sources: Iterable[InputField]) -> str:
    """Give the expression that makes a column of its sources; empty if it is a copy or unknown."""
    every = [t for source in sources for t in source.transformations or ()]
    texts = dict.fromkeys(
        _without_varying(_ALIASES.sub("", t.description))
        for t in [t for t in every if _is_direct(t)] or every
        if t.subtype != "IDENTITY" and t.description
    )
    return truncated("; ".join(texts), _MAX_EXPRESSION)


_ALIASES = re.compile(r"( AS (\w+|`[^`]*`))+\Z")
_LITERAL = re.compile(r"'(?:[^'\\]|\\.)*+'|\b\d[\d:.,TZ+ -]*\d\b")
_DIGITS_OF_DATES = 6
"""The fewest digits of a date: ``2024-05`` has six. A literal with fewer digits is probably a rate
or a length, which is the same in each run."""


def _without_varying(expression: str) -> str:
    """Replace by ``…`` an expression's literals that may belong to one run alone.

    These are the literals with six digits or more: dates, times, numbers of batches.

    :param expression: an SQL expression
    """

    def unless_varying(literal: re.Match[str]) -> str:
        digits = sum(map(str.isdigit, literal[0]))
        return "…" if digits >= _DIGITS_OF_DATES else literal[0]

    return _LITERAL.sub(unless_varying, expression)


# --- the step -------------------------------------------------------------------------------------


_FACETS = "https://openlineage.io/spec/facets/1-1-0"
_DATASET_SCHEMA = f"{_FACETS}/DocumentationDatasetFacet.json#/$defs/DocumentationDatasetFacet"
_JOB_SCHEMA = f"{_FACETS}/DocumentationJobFacet.json#/$defs/DocumentationJobFacet"


def described(
    event: Event,
    last: Event | None = None,
    upstream: Sequence[Event] = (),
    airflow_url: str = "",
) -> Event:
    """Add descriptions to an event: of its datasets, and at the end of a try also of its run.

    :param last: the event of the task's last successful run; None if there is none
    :param upstream: the events of the tasks before this one, the nearest first
    :param airflow_url: URL of Airflow's pages, to which the datasets' descriptions lead; empty for
        none
    """
    own = Descriptions(event, airflow_url)
    before = Descriptions(last, airflow_url).of_datasets() if last else {}
    texts = before | own.of_datasets()
    for name, written in _written(upstream, airflow_url).items():
        read = texts.get((Side.READ, name))
        text = truncated(f"{read.text}. {written.text}" if read else written.text, MAX_OF_DATASET)
        page = (read or written).page
        texts[Side.READ, name] = Described(text, written.columns, page)
    job = event["job"]["facets"]
    if "eventTime" in event:
        job = {model.DOCUMENTATION_KEY: facet(_JOB_SCHEMA, description=own.of_run()), **job}
    inputs, outputs = (
        [_with_texts(d, texts.get((side, name_of(d)))) for d in event[key]]
        for side, key in ((Side.READ, "inputs"), (Side.WRITE, "outputs"))
    )
    return replaced(event, inputs=inputs, outputs=outputs, job_facets=job)


def _written(upstream: Sequence[Event], airflow_url: str) -> dict[DatasetName, Described]:
    described_outputs: dict[DatasetName, Described] = {}
    for event in reversed(upstream):
        every = Descriptions(event, airflow_url).of_datasets().items()
        described_outputs |= {name: texts for (side, name), texts in every if side is Side.WRITE}
    return described_outputs


def _with_texts(dataset: dict[str, Any], texts: Described | None) -> dict[str, Any]:
    if texts is None:
        return dataset
    facets = {
        model.DOCUMENTATION_KEY: facet(_DATASET_SCHEMA, description=texts.text),
        **dataset["facets"],
    }
    documentation = facets[model.DOCUMENTATION_KEY]
    text = with_line(documentation["description"], texts.page)
    facets[model.DOCUMENTATION_KEY] = {**documentation, "description": text}
    fields = (facets.get("schema") or {}).get("fields")
    if fields and texts.columns:
        fields = [_with_text(field, texts.columns) for field in fields]
        facets["schema"] = {**facets["schema"], "fields": fields}
    return {**dataset, "facets": facets}


def _with_text(field: dict[str, Any], texts: dict[str, str]) -> dict[str, Any]:
    text = texts.get(field["name"])
    return field if text is None or field.get("description") else {**field, "description": text}
