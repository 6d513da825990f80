"""How partitions are laid out as folders, and what the values in them are: the definition's half.

A layout is text such as ``{event_date:%Y/%m/%d}/{country}`` or ``dt={dt:%Y-%m-%d}/h={hour:%H}``:
the folders below a dataset's root, with fields. A field with a pattern of :meth:`strptime` is a
time, which may take several folders, and several fields (``year={d:%Y}/month={d:%m}``); one
without is text, escaped as Hive does. Values of times are ISO (``2024-05-06``, ``2024-05-06T10``,
``2024-05``, ``2024-W19``) unless the dimension has a format of its own; a time without a year is
written as in its pattern.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model import globs, timestamps
from airflow_provider_sparklineage.model.frozen import Frozen
from airflow_provider_sparklineage.model.partitioning import (
    NULL,
    Dimension,
    Fit,
    Partition,
    hive_fit,
    split_folder,
    unescape,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIELD = re.compile(r"\{(?P<label>[^{}:/]+)(?::(?P<pattern>[^{}]+))?\}")


class _Field(NamedTuple):
    """A field's share of one folder; fields that span folders have several of one occurrence."""

    occurrence: int
    label: str
    pattern: str


class Layout(Frozen, frozen=True, dict=True):
    """The folders of a partition below its dataset's root; make it with :meth:`of`.

    :param formats: for each label, in the dimensions' order, the format of its values; empty for
        text that is no time
    """

    text: str
    formats: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, text: str, dimensions: Iterable[Dimension] = ()) -> Layout:
        """Parse a layout.

        :param dimensions: order and formats of the values; without them the layout's own
        :raise ValueError: if it is no layout, or gives less than a dimension's format needs
        """
        text = text.strip("/ ")
        patterns: dict[str, list[str]] = defaultdict(list)
        for field in _FIELD.finditer(text):
            patterns[field["label"]].append(field["pattern"] or "")
        if not patterns:
            msg = "it names no field; write them as {dt} or {dt:%Y-%m-%d}"
            raise ValueError(msg)
        given = {d.label: d.format for d in dimensions if d.label in patterns}
        formats = tuple(
            (label, timestamps.value_format(label, patterns[label], given.get(label, "")))
            for label in (*given, *(label for label in patterns if label not in given))
        )
        layout = cls(text, formats)
        layout._check()
        return layout

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the dimensions that the folders have values of."""
        return tuple(label for label, _ in self.formats)

    def fit(self, below: str) -> Fit | None:
        """Read a partition, with the places of its values, from a path below the dataset's root.

        A path that ends early gives the dimensions that it has in full; what comes after the last
        folder, such as files, is ignored.

        :return: None if the path does not fit
        """
        found: dict[str, dict[str, str]] = defaultdict(dict)
        spans: dict[int, tuple[str, int, int]] = {}
        shares: Counter[str] = Counter()
        folders = re.finditer("[^/]+", below)
        for segment, folder in zip(self._segments, folders, strict=False):
            match = _segment_regex(segment, self._alone).fullmatch(folder[0])
            if match is None:
                if globs.is_glob(folder[0]):
                    break  # a glob for a part of a time: the path gives no more
                return None
            for number, field in enumerate(f for f in segment if isinstance(f, _Field)):
                text = match[f"f{number}"]
                for directive, value in self._read(field, text).items():
                    if found[field.label].setdefault(directive, value) != value:
                        return None
                begin, end = (folder.start() + at for at in match.span(f"f{number}"))
                first = spans.get(field.occurrence, (field.label, begin, end))
                spans[field.occurrence] = (field.label, first[1], end)
                shares[field.label] += 1
        try:
            values = {label: self._value(label, parts) for label, parts in found.items()}
        except ValueError:  # the 30th of February
            return None
        complete = [label for label in self.labels if shares[label] == self._shares[label]]
        return Fit(
            Partition(tuple((label, values[label]) for label in complete)),
            tuple(span for span in spans.values() if span[0] in complete),
        )

    def begins(self, folder: str) -> bool:
        """Whether a folder's name alone shows that it is the first of this layout."""
        return (
            self.has_clear_start
            and _segment_regex(self._segments[0], self._alone).fullmatch(folder) is not None
        )

    @property
    def has_clear_start(self) -> bool:
        """Whether the first folder differs from any other: it is not free text alone."""
        return any(not isinstance(f, _Field) or f.pattern for f in self._segments[0])

    @cached_property
    def _segments(self) -> tuple[tuple[str | _Field, ...], ...]:
        segments: list[list[str | _Field]] = [[]]

        def add(text: str, field: tuple[int, str] | None) -> None:
            for number, part in enumerate(text.split("/")):
                if number:
                    segments.append([])
                if part:
                    segments[-1].append(_Field(*field, part) if field else part)

        end = 0
        for occurrence, found in enumerate(_FIELD.finditer(self.text)):
            add(self.text[end : found.start()], None)
            if found["pattern"]:
                add(found["pattern"], (occurrence, found["label"]))
            else:
                segments[-1].append(_Field(occurrence, found["label"], ""))
            end = found.end()
        add(self.text[end:], None)
        return tuple(tuple(segment) for segment in segments)

    @cached_property
    def _shares(self) -> Counter[str]:
        """In how many shares of folders each label is."""
        return Counter(f.label for s in self._segments for f in s if isinstance(f, _Field))

    @cached_property
    def _alone(self) -> frozenset[str]:
        """Labels with a single share: what stands there may be null or a glob as well."""
        return frozenset(label for label, count in self._shares.items() if count == 1)

    def _check(self) -> None:
        for segment in self._segments:
            if not segment:
                msg = "it has an empty folder; write one slash between two"
                raise ValueError(msg)
            if any(isinstance(part, str) and re.search(r"[{}]", part) for part in segment):
                msg = "a brace is not closed, or a field has no name; write {dt} or {dt:%Y-%m-%d}"
                raise ValueError(msg)
            texts = [isinstance(part, _Field) and not part.pattern for part in segment]
            if any(one and other for one, other in pairwise(texts)):
                msg = "two fields of text are adjacent; write something between them"
                raise ValueError(msg)

    def _read(self, field: _Field, text: str) -> dict[str, str]:
        """Digits by directive; what is no time, or none that can be read, under the empty key."""
        if field.pattern and not self._is_raw(field.label, text):
            return timestamps.digits(field.pattern, text) or {}
        return {"": text}

    def _is_raw(self, label: str, text: str) -> bool:
        return label in self._alone and (text == NULL or globs.is_glob(text))

    def _value(self, label: str, parts: dict[str, str]) -> str:
        if "" in parts:
            return unescape(parts[""])
        return timestamps.written(timestamps.from_digits(parts), dict(self.formats)[label])


@lru_cache(maxsize=256)  # a few layouts' folders, matched against every path of every task
def _segment_regex(segment: tuple[str | _Field, ...], alone: frozenset[str]) -> re.Pattern[str]:
    parts = []
    fields = 0
    for part in segment:
        if not isinstance(part, _Field):
            parts.append(re.escape(part))
            continue
        regex = timestamps.pattern_regex(part.pattern) if part.pattern else "[^/]+?"
        if part.pattern and part.label in alone:
            regex = f"{regex}|{NULL}|[^/]*?{globs.SIGN}[^/]*?"
        parts.append(f"(?P<f{fields}>{regex})")
        fields += 1
    return re.compile("".join(parts), re.DOTALL)


class PartitionSpec(Frozen, frozen=True):
    """How a dataset is partitioned: the definition, of which a partition is a value.

    :param layout: the folders, where they are not Hive's ``column=value``
    :param description: for people, e.g. ``PARTITIONED BY (days(ts), country)``
    """

    dimensions: tuple[Dimension, ...]
    layout: Layout | None = None
    description: str = ""

    @property
    def labels(self) -> frozenset[str]:
        """The labels of the dimensions that paths have values of."""
        if self.layout:
            return frozenset(self.layout.labels)
        return frozenset(d.label for d in self.dimensions)

    def fit(self, below: str) -> Fit | None:
        """Read a partition from a path below the dataset's root, by the layout or as Hive has it.

        :return: None if the path does not fit
        """
        return self.layout.fit(below) if self.layout else hive_fit(below)

    def begins(self, folder: str) -> bool:
        """Whether a folder's name alone shows that it is the first of a partition."""
        if self.layout:
            return self.layout.begins(folder)
        found = split_folder(folder)
        return found is not None and found[0] in self.labels
