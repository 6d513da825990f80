"""The organisation's own rules: how its datasets are partitioned.

A rule has globs of dataset names, dimensions, and a layout if the folders are not Hive's
(``column=value``)::

    - dataset: "s3://bucket/*"
      dimensions:
        - field: business_date
          format: "%Y%m%d"
    - dataset: ["/lake/raw/*", "hdfs://nn/lake/**"]
      dimensions: [event_date, country]
      layout: "{event_date:%Y/%m/%d}/{country}"
      description: "PARTITIONED BY (event_date, country)"
    - dataset: "s3://lake/orders"
      asset: orders
      partition_key: "{dt}|{region}"
      dimensions: [region, dt]

``asset`` is the name or the URI of Airflow's asset for the dataset, where that is not the dataset's
own name, and ``partition_key`` how Airflow's partition keys of the asset are written.

A glob is matched with the printed name of a dataset: ``<namespace>/<name>``, or the path of a local
dataset. ``*`` and ``?`` match only within one folder, as in Hadoop's globs, because the glob also
says where the dataset ends and its partitions begin. ``**`` matches any number of folders; the
dataset then ends before the first folder that looks like the first folder of a partition. The first
rule that matches is used.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from airflow_provider_sparklineage.model import globs, rule_files, timestamps
from airflow_provider_sparklineage.model.datasets import DatasetName, untrimmed
from airflow_provider_sparklineage.model.globs import ANY_DEPTH, compiled_folders
from airflow_provider_sparklineage.model.partitioning import (
    IDENTITY,
    NULL,
    Dimension,
    Fit,
    KeyPattern,
    Partition,
    hive_fit,
    split_folder,
    unescape,
)
from airflow_provider_sparklineage.model.rule_files import LineNumbers, RuleFile, Text, Texts
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.timestamps import check_format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from airflow_provider_sparklineage.model.rule_files import Keys


# --- layouts: the folders of partitions, and the values in them -----------------------------------
#
# A layout is text such as ``{event_date:%Y/%m/%d}/{country}`` or ``dt={dt:%Y-%m-%d}/h={hour:%H}``:
# the folders below a dataset's root, with fields. A field with a pattern of :meth:`strptime` is a
# time, which may have several folders, and several fields (``year={d:%Y}/month={d:%m}``); a field
# without a pattern is text, escaped as by Hive. Values of times are ISO (``2024-05-06``,
# ``2024-05-06T10``, ``2024-05``, ``2024-W19``) unless the dimension has a format of its own; a time
# without a year is written as in its pattern.


_FIELD = re.compile(r"\{(?P<label>[^{}:/]+)(?::(?P<pattern>[^{}]+))?\}")


class _Field(NamedTuple):
    """The part of a field that is in one folder's name; a field may have parts in several folders.

    :param occurrence: number of the field in the layout's text, equal for all parts of the field
    :param label: the label of the dimension whose value the field has
    :param pattern: the directives in this folder, e.g. ``%Y%m``; empty if the value is text
    """

    occurrence: int
    label: str
    pattern: str


class Layout(Frozen, frozen=True, dict=True):
    """The folders of a partition below its dataset's root; :meth:`parse` makes it.

    :param text: the layout as the rule has it, e.g. ``{dt:%Y/%m/%d}/{country}``
    :param formats: pairs of label and format of its values, in the dimensions' order; the format is
        empty for text that is not a time
    """

    text: str
    formats: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str, dimensions: Iterable[Dimension] = ()) -> Layout:
        """Parse a layout.

        :param dimensions: the dimensions, which give order and formats of the values; without
            dimensions the layout gives them
        :raise ValueError: if the text is not a layout, or lacks a directive of a dimension's format
        """
        text = text.strip("/ ")
        patterns: dict[str, list[str]] = defaultdict(list)
        for field in _FIELD.finditer(text):
            patterns[field["label"]].append(field["pattern"] or "")
        if not patterns:
            msg = "it names no field; write them as {dt} or {dt:%Y-%m-%d}"
            raise ValueError(msg)
        wanted = {d.label: d.format for d in dimensions if d.label in patterns}
        formats = tuple(
            (label, timestamps.value_format(label, patterns[label], wanted.get(label, "")))
            for label in (*wanted, *(label for label in patterns if label not in wanted))
        )
        layout = cls(text, formats)
        layout._check()
        return layout

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the dimensions whose values are in the folders' names."""
        return tuple(label for label, _ in self.formats)

    def fit(self, below: str) -> Fit | None:
        """Read a partition, with the places of its values, from a path below the dataset's root.

        A path with fewer folders than the layout gives only the dimensions whose folders are all in
        the path. Folders and files after the layout's last folder are ignored.

        :return: None if the path does not match the layout
        """
        parts_by_label: dict[str, dict[str, str]] = defaultdict(dict)
        spans: dict[int, tuple[str, int, int]] = {}
        shares: Counter[str] = Counter()
        folders = re.finditer("[^/]+", below)
        for segment, folder in zip(self._segments, folders, strict=False):
            match = _segment_regex(segment, self._alone).fullmatch(folder[0])
            if match is None:
                if globs.is_glob(folder[0]):
                    break  # with a glob in a part of a time, later folders give no values
                return None
            for number, field in enumerate(f for f in segment if isinstance(f, _Field)):
                text = match[f"f{number}"]
                for directive, value in self._read(field, text).items():
                    if parts_by_label[field.label].setdefault(directive, value) != value:
                        return None
                begin, end = (folder.start() + at for at in match.span(f"f{number}"))
                first = spans.get(field.occurrence, (field.label, begin, end))
                spans[field.occurrence] = (field.label, first[1], end)
                shares[field.label] += 1
        try:
            values = {label: self._value(label, parts) for label, parts in parts_by_label.items()}
        except ValueError:  # the 30th of February
            return None
        complete = [label for label in self.labels if shares[label] == self._shares[label]]
        return Fit(
            Partition(tuple((label, values[label]) for label in complete)),
            tuple(span for span in spans.values() if span[0] in complete),
        )

    def begins(self, folder: str) -> bool:
        """Whether a folder's name alone shows that it is the first folder of this layout."""
        return (
            self.has_clear_start
            and _segment_regex(self._segments[0], self._alone).fullmatch(folder) is not None
        )

    @property
    def has_clear_start(self) -> bool:
        """Whether the first folder's name has a fixed text or a time, by which it is recognised."""
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
        for occurrence, match in enumerate(_FIELD.finditer(self.text)):
            add(self.text[end : match.start()], None)
            if match["pattern"]:
                add(match["pattern"], (occurrence, match["label"]))
            else:
                segments[-1].append(_Field(occurrence, match["label"], ""))
            end = match.end()
        add(self.text[end:], None)
        return tuple(tuple(segment) for segment in segments)

    @cached_property
    def _shares(self) -> Counter[str]:
        """The number of parts (:class:`_Field`) that the value of each label has in the folders.

        In ``{dt:%Y/%m}/{region}`` it is 2 for ``dt``, which is in two folders, and 1 for
        ``region``. A path that has fewer parts of a label lacks the label's value.
        """
        return Counter(f.label for s in self._segments for f in s if isinstance(f, _Field))

    @cached_property
    def _alone(self) -> frozenset[str]:
        """The labels with one field, in one folder; null or a glob may replace such a field."""
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
        """Read the text that a field matches in a folder's name.

        :return: the digits by directive, e.g. ``{"Y": "2024", "m": "05"}``; for a field without a
            pattern, and for a null or a glob in place of a time, the text with the key ``""``
        """
        is_raw = field.label in self._alone and (text == NULL or globs.is_glob(text))
        if field.pattern and not is_raw:
            return timestamps.digits(field.pattern, text) or {}
        return {"": text}

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
    """How a dataset is partitioned: by which dimensions, and in which folders.

    :param layout: the folders; None if they are Hive's ``column=value``
    :param description: a text for people, e.g. ``PARTITIONED BY (days(ts), country)``
    :param key: how Airflow's partition keys are written; None if no rule says so
    """

    dimensions: tuple[Dimension, ...]
    layout: Layout | None = None
    description: str = ""
    key: KeyPattern | None = None

    @property
    def labels(self) -> frozenset[str]:
        """The labels of the dimensions whose values are in paths."""
        if self.layout:
            return frozenset(self.layout.labels)
        return frozenset(d.label for d in self.dimensions)

    def fit(self, below: str) -> Fit | None:
        """Read a partition from a path below the dataset's root, by the layout or as Hive does.

        :return: None if the path does not match
        """
        return self.layout.fit(below) if self.layout else hive_fit(below)

    def begins(self, folder: str) -> bool:
        """Whether a folder's name alone shows that it is the first folder of a partition."""
        if self.layout:
            return self.layout.begins(folder)
        column = split_folder(folder)
        return column is not None and column[0] in self.labels


class Split(NamedTuple):
    """A name that a rule has split into a dataset and the path of a partition below the dataset."""

    root: DatasetName
    below: str
    spec: PartitionSpec
    fit: Fit


class Rule(Frozen, frozen=True):
    """A rule: globs of datasets, and how the datasets with matching names are partitioned.

    :param asset: name or URI of the dataset's asset in Airflow; empty if no rule says so
    """

    datasets: tuple[str, ...]
    spec: PartitionSpec
    asset: str = ""

    @property
    def document(self) -> dict[str, object]:
        """The rule as a JSON document, from which an equal rule can be made."""
        layout, key = self.spec.layout, self.spec.key
        optional = {
            "layout": layout.text if layout else "",
            "description": self.spec.description,
            "asset": self.asset,
            "partition_key": key.text if key else "",
        }
        return {
            "dataset": list(self.datasets),
            "dimensions": [
                {"fields": list(d.fields), "transform": d.transform}
                | {key: value for key, value in (("name", d.name), ("format", d.format)) if value}
                for d in self.spec.dimensions
            ],
            **{key: value for key, value in optional.items() if value},
        }

    def matches(self, root: DatasetName) -> bool:
        """Whether the rule is for a dataset."""
        return any(compiled_folders(glob).fullmatch(str(root)) for glob in self.datasets)

    def split(self, name: DatasetName) -> Split | None:
        """Split a name where a partition of this rule begins.

        :return: None if no glob matches the name, or the path below the dataset is not a partition
        """
        for end in self._root_ends(name):
            below = name.name[end:].lstrip("/")
            fit = self.spec.fit(below)
            if fit is not None:
                return Split(DatasetName(name.namespace, name.name[:end]), below, self.spec, fit)
        return None

    def _root_ends(self, name: DatasetName) -> Iterator[int]:
        """Yield the positions in a name where a dataset's root may end, the likeliest first."""
        printed = str(name)
        offset = len(printed) - len(name.name)
        for glob in self.datasets:
            regex = compiled_folders(glob)
            if ANY_DEPTH not in glob:
                match = regex.match(printed)
                if match is not None and match.end() > offset:
                    yield match.end() - offset
                continue
            for folder in re.finditer("(?<=[^/]/)[^/]+", name.name):
                end = folder.start() - 1
                if self.spec.begins(folder[0]) and regex.fullmatch(printed, 0, end + offset):
                    yield end
            if regex.fullmatch(printed):
                yield len(name.name)


# --- entries of rules files (YAML), and JSON documents, to rules and back -------------------------


class _DimensionDocument(msgspec.Struct, forbid_unknown_fields=True):
    field: Text = ""
    fields: Texts = ()
    transform: Text = IDENTITY
    name: Text = ""
    format: Text = ""


class _RuleDocument(msgspec.Struct, forbid_unknown_fields=True):
    dataset: Texts
    dimensions: Annotated[tuple[Text | _DimensionDocument, ...], msgspec.Meta(min_length=1)] = ()
    layout: Text = ""
    description: Text = ""
    asset: Text = ""
    partition_key: Text = ""


_RULES_FILE = RuleFile(
    "Partitioning rules",
    _RuleDocument,
    begin="- dataset: ",
    nested={"dimensions": _DimensionDocument},
    must_be={"dimensions": "a list of one or more dimensions, each with a field"},
)
"""The reader of files of partitioning rules."""


class _RuleMaker:
    """Makes rules from the entries of a rules file; its errors name the place of the invalid value.

    :param lines: the lines of the values in the file
    """

    def __init__(self, lines: LineNumbers) -> None:
        self._error = lines.error

    def rule(self, document: _RuleDocument, at: Keys) -> Rule:
        if not document.dimensions and not document.layout:
            raise self._error(at, "the key 'dimensions' is missing", "Add it, or a layout")
        rule = self._partitioned(document, at)
        asset = document.asset.strip()
        if asset and (len(rule.datasets) > 1 or any(map(globs.is_glob, rule.datasets))):
            raise self._error(
                (*at, "asset"),
                "an asset has one dataset, and the rule is for several",
                "Write a rule for this dataset alone, above the other",
            )
        key = self._key_pattern(document.partition_key.strip(), rule.spec, (*at, "partition_key"))
        return msgspec.structs.replace(
            rule, spec=msgspec.structs.replace(rule.spec, key=key), asset=asset
        )

    def _key_pattern(self, text: str, spec: PartitionSpec, at: Keys) -> KeyPattern | None:
        if not text:
            return None
        try:
            pattern = KeyPattern.parse(text)
        except ValueError as e:
            raise self._error(at, str(e)) from e
        known = [d.label for d in spec.dimensions]
        for label in pattern.labels:
            if label not in known:
                problem = f"{label!r} is no dimension of the rule ({', '.join(known)})"
                raise self._error(at, problem, "Add it to the dimensions, or rename it")
        return pattern

    def _partitioned(self, document: _RuleDocument, at: Keys) -> Rule:
        is_one = isinstance(document.dataset, str)
        datasets = tuple(
            self._glob(glob, (*at, "dataset") if is_one else (*at, "dataset", n))
            for n, glob in enumerate(rule_files.listed(document.dataset))
        )
        dimensions = self._dimensions(document.dimensions, (*at, "dimensions"))
        if not document.layout:
            return Rule(datasets, PartitionSpec(dimensions, None, document.description.strip()))
        layout = self._layout(document.layout, dimensions, (*at, "layout"))
        if not layout.has_clear_start and any(ANY_DEPTH in glob for glob in datasets):
            raise self._error(
                (*at, "dataset"),
                "with ** it is open where a dataset ends and its layout begins, because the "
                "layout's first folder may have any name",
                "Write a * for each folder",
            )
        formats = dict(layout.formats)
        # A rule without dimensions gets the dimensions that its layout names.
        dimensions = dimensions or tuple(Dimension.of_column(label) for label in layout.labels)
        dimensions = tuple(
            replace(d, format=d.format or formats.get(d.label, "")) for d in dimensions
        )
        return Rule(datasets, PartitionSpec(dimensions, layout, document.description.strip()))

    def _glob(self, glob: str, at: Keys) -> str:
        if glob.strip("/") == "*":
            raise self._error(at, f"{glob!r} is one folder", "Write ** for all datasets")
        named = untrimmed(glob)  # names are printed without s3a: and file:
        if named is not None:
            return str(named)
        if "://" not in glob and not glob.startswith("*"):
            raise self._error(
                at,
                f"no dataset's name is like {glob!r}",
                "Begin with a scheme (s3://bucket/…), with / or with **/",
            )
        return glob

    def _dimensions(
        self, documents: tuple[str | _DimensionDocument, ...], at: Keys
    ) -> tuple[Dimension, ...]:
        dimensions = tuple(self._dimension(one, (*at, n)) for n, one in enumerate(documents))
        labels = [d.label for d in dimensions]
        for n, label in enumerate(labels):
            if label in labels[:n]:
                problem = f"there are two dimensions {label!r}"
                raise self._error((*at, n), problem, "Give one of them another name")
        return dimensions

    def _dimension(self, document: str | _DimensionDocument, at: Keys) -> Dimension:
        if isinstance(document, str):
            document = _DimensionDocument(field=document)
        if bool(document.field) == bool(document.fields):
            raise self._error(at, "it must have a field, or a list of fields, and not both")
        if document.format:
            try:
                check_format(document.format.strip())
            except ValueError as e:
                raise self._error((*at, "format"), str(e)) from e
        fields = rule_files.listed(document.field or document.fields)
        if not all(fields):
            raise self._error(at, *rule_files.EMPTY)
        return Dimension(
            fields,
            document.transform.strip() or IDENTITY,
            document.name.strip(),
            document.format.strip(),
        )

    def _layout(self, text: str, dimensions: tuple[Dimension, ...], at: Keys) -> Layout:
        try:
            layout = Layout.parse(text, dimensions)
        except ValueError as e:
            raise self._error(at, str(e)) from e
        labels = [d.label for d in dimensions]
        for label in layout.labels:
            if labels and label not in labels:
                problem = f"the field {label!r} is no dimension of the rule ({', '.join(labels)})"
                raise self._error(at, problem, "Add it to the dimensions, or rename it")
        return layout


class PartitionRules(Frozen, frozen=True):
    """Partitioning rules in their order; the first rule that matches a name is used."""

    rules: tuple[Rule, ...] = ()

    @classmethod
    def from_documents(cls, documents: object, lines: LineNumbers | None = None) -> PartitionRules:
        """Make rules from the entries of a rules file, or from the result of :meth:`documents`.

        :param documents: a list with a mapping for each rule; any other value raises
        :param lines: the lines of the values in the file, for errors; None if there is no file
        :raise RulesError: if a rule is invalid; the error names its place and key
        """
        lines = lines or LineNumbers(_RULES_FILE.title)
        numbered = enumerate(_RULES_FILE.converted(documents, lines))
        maker = _RuleMaker(lines)
        return cls(tuple(maker.rule(document, (n,)) for n, document in numbered))

    def documents(self) -> list[dict[str, object]]:
        """Give the rules as JSON documents, from which :meth:`from_documents` makes equal rules."""
        return [rule.document for rule in self.rules]

    def spec(self, dataset: DatasetName) -> PartitionSpec | None:
        """Find the definition of a dataset's partitions; None if no rule is for the dataset."""
        return next((rule.spec for rule in self.rules if rule.matches(dataset)), None)

    def name_of(self, *asset: str) -> str:
        """Give the printed name of the dataset that a rule names for an asset; empty if none does.

        :param asset: the asset's name and its URI
        """
        named = (rule.datasets[0] for rule in self.rules if rule.asset and rule.asset in asset)
        return next(named, "")

    def dimensions(self, dataset: DatasetName) -> dict[str, Dimension]:
        """Give a dataset's dimensions by their labels; {} if no rule is for the dataset."""
        spec = self.spec(dataset)
        return {d.label: d for d in spec.dimensions} if spec else {}

    def split(self, name: DatasetName) -> Split | None:
        """Split a name, trimmed or not, into a dataset and the path below its root.

        ``/lake/x/2024-01-01/10`` is ``/lake/x`` with ``event_date=2024-01-01, hour=10``, if a rule
        for ``/lake/*`` has a layout for it. The name of a dataset itself gives the empty partition.

        :return: None if no rule can split the name
        """
        return next((split for rule in self.rules if (split := rule.split(name))), None)


NO_RULES = PartitionRules()


def load_partition_rules(text_or_path: str | Path) -> PartitionRules:
    """Load rules from a YAML file, or from inline YAML.

    :param text_or_path: inline YAML if it has more than one line or begins as YAML lists do;
        otherwise the path of a file
    :raise RulesError: if a rule is invalid; the error names file, line, key and the fix
    """
    return _partition_rules(*_RULES_FILE.content(text_or_path))


@lru_cache(maxsize=16)  # a task's settings are resolved several times, with the same rules
def _partition_rules(text: str, name: str) -> PartitionRules:
    return PartitionRules.from_documents(*_RULES_FILE.read(text, name))
