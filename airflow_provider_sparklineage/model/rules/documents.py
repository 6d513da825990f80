"""Documents of partitioning rules, as YAML and JSON have them, to definitions, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from airflow_provider_sparklineage.model.datasets import untrimmed
from airflow_provider_sparklineage.model.globs import ANY_DEPTH
from airflow_provider_sparklineage.model.layouts import Layout, PartitionSpec
from airflow_provider_sparklineage.model.partitioning import IDENTITY, Dimension
from airflow_provider_sparklineage.model.rule_files import RuleFile, Text, Texts
from airflow_provider_sparklineage.model.rule_files.text import EMPTY
from airflow_provider_sparklineage.model.timestamps import check_format

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_provider_sparklineage.model.rule_files.text import Keys, LineNumbers

CheckedRule = tuple[tuple[str, ...], PartitionSpec]
"""Globs of datasets, and how those are partitioned."""


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


FILE = RuleFile(
    "Partitioning rules",
    _RuleDocument,
    begin="- dataset: ",
    nested={"dimensions": _DimensionDocument},
    must_be={"dimensions": "a list of one or more dimensions, each with a field"},
)
"""What partitioning rules are read by."""


def checked(documents: object, lines: LineNumbers) -> tuple[CheckedRule, ...]:
    """Check documents.

    :param lines: where they are from, for errors
    :raise RulesError: if one is wrong; names its place and key, and what to do
    """
    rules = _Rules(lines)
    given = FILE.converted(documents, lines)
    return tuple(rules.rule(document, (n,)) for n, document in enumerate(given))


def document(datasets: Collection[str], spec: PartitionSpec) -> dict[str, object]:
    """Give a rule as JSON has it, which :func:`checked` reads again."""
    optional = {"layout": spec.layout.text if spec.layout else "", "description": spec.description}
    return {
        "dataset": list(datasets),
        "dimensions": [
            {"fields": list(d.fields), "transform": d.transform}
            | {key: value for key, value in (("name", d.name), ("format", d.format)) if value}
            for d in spec.dimensions
        ],
        **{key: value for key, value in optional.items() if value},
    }


class _Rules:
    """Documents to rules, with an error that names the place of what is wrong."""

    def __init__(self, lines: LineNumbers) -> None:
        self._error = lines.error

    def rule(self, given: _RuleDocument, at: Keys) -> CheckedRule:
        if not given.dimensions and not given.layout:
            raise self._error(at, "the key 'dimensions' is missing", "Add it, or a layout")
        is_one = isinstance(given.dataset, str)
        datasets = tuple(
            self._glob(glob, (*at, "dataset") if is_one else (*at, "dataset", n))
            for n, glob in enumerate(_listed(given.dataset))
        )
        dimensions = self._dimensions(given.dimensions, (*at, "dimensions"))
        if not given.layout:
            return datasets, PartitionSpec(dimensions, None, given.description.strip())
        layout = self._layout(given.layout, dimensions, (*at, "layout"))
        if not layout.has_clear_start and any(ANY_DEPTH in glob for glob in datasets):
            raise self._error(
                (*at, "dataset"),
                "with ** it is open where a dataset ends and its layout begins, because the "
                "layout's first folder may have any name",
                "Write a * for each folder",
            )
        formats = dict(layout.formats)
        # A layout alone names its dimensions well enough.
        dimensions = dimensions or tuple(Dimension.of(label) for label in layout.labels)
        dimensions = tuple(_with_format(d, formats.get(d.label, "")) for d in dimensions)
        return datasets, PartitionSpec(dimensions, layout, given.description.strip())

    def _glob(self, glob: str, at: Keys) -> str:
        if glob.strip("/") == "*":
            raise self._error(at, f"{glob!r} is one folder", "Write ** for all datasets")
        named = untrimmed(glob)  # s3a://… and file:///… are printed otherwise
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
        self, given: tuple[str | _DimensionDocument, ...], at: Keys
    ) -> tuple[Dimension, ...]:
        dimensions = tuple(self._dimension(one, (*at, n)) for n, one in enumerate(given))
        labels = [d.label for d in dimensions]
        for n, label in enumerate(labels):
            if label in labels[:n]:
                problem = f"there are two dimensions {label!r}"
                raise self._error((*at, n), problem, "Give one of them another name")
        return dimensions

    def _dimension(self, given: str | _DimensionDocument, at: Keys) -> Dimension:
        if isinstance(given, str):
            given = _DimensionDocument(field=given)
        if bool(given.field) == bool(given.fields):
            raise self._error(at, "it must have a field, or a list of fields, and not both")
        if given.format:
            try:
                check_format(given.format.strip())
            except ValueError as e:
                raise self._error((*at, "format"), str(e)) from e
        fields = _listed(given.field or given.fields)
        if not all(fields):
            raise self._error(at, *EMPTY)
        return Dimension(
            fields, given.transform.strip() or IDENTITY, given.name.strip(), given.format.strip()
        )

    def _layout(self, given: str, dimensions: tuple[Dimension, ...], at: Keys) -> Layout:
        try:
            layout = Layout.of(given, dimensions)
        except ValueError as e:
            raise self._error(at, str(e)) from e
        labels = [d.label for d in dimensions]
        for label in layout.labels:
            if labels and label not in labels:
                problem = f"the field {label!r} is no dimension of the rule ({', '.join(labels)})"
                raise self._error(at, problem, "Add it to the dimensions, or rename it")
        return layout


def _listed(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text.strip() for text in ([given] if isinstance(given, str) else given))


def _with_format(dimension: Dimension, known: str) -> Dimension:
    return Dimension(
        dimension.fields, dimension.transform, dimension.name, dimension.format or known
    )
