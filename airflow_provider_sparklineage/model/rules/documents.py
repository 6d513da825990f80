"""Documents of partitioning rules, as YAML and JSON have them, to definitions, and back."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec

from airflow_provider_sparklineage.model.datasets import untrimmed
from airflow_provider_sparklineage.model.globs import ANY_DEPTH
from airflow_provider_sparklineage.model.layouts import Layout, PartitionSpec
from airflow_provider_sparklineage.model.partitioning import IDENTITY, Dimension
from airflow_provider_sparklineage.model.timestamps import check_format

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_provider_sparklineage.model.rules.text import Keys, LineNumbers

CheckedRule = tuple[tuple[str, ...], PartitionSpec]
"""Globs of datasets, and how those are partitioned."""

# No pattern for blank texts: in a union it makes msgspec 0.22 crash when Python ends.
_Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Texts: TypeAlias = _Text | Annotated[tuple[_Text, ...], msgspec.Meta(min_length=1)]


_UNKNOWN = re.compile("Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile("Object missing required field `(.*)`")


_EMPTY = ("it must be a text that is not empty", "Put it in quotes")


class _DimensionDocument(msgspec.Struct, forbid_unknown_fields=True):
    field: _Text = ""
    fields: _Texts = ()
    transform: _Text = IDENTITY
    name: _Text = ""
    format: _Text = ""


class _RuleDocument(msgspec.Struct, forbid_unknown_fields=True):
    dataset: _Texts
    dimensions: Annotated[tuple[_Text | _DimensionDocument, ...], msgspec.Meta(min_length=1)] = ()
    layout: _Text = ""
    description: _Text = ""


def checked(documents: object, lines: LineNumbers) -> tuple[CheckedRule, ...]:
    """Check documents.

    :param lines: where they are from, for errors
    :raise RulesError: if one is wrong; names its place and key, and what to do
    """
    try:
        given = msgspec.convert(documents, tuple[_RuleDocument, ...])
    except msgspec.ValidationError as e:
        raise lines.error(*_explained(str(e))) from e
    except UnicodeEncodeError as e:
        problem = "a text has half of a surrogate pair, which is no character"
        raise lines.error((), problem, "Write the character itself") from e
    rules = _Rules(lines)
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


def _explained(error: str) -> tuple[Keys, str, str]:
    """Turn an error of msgspec into the keys of the value that is wrong, the problem and the fix.

    Such as "Object contains unknown field `layuot` - at `$[0]`", of which only the text is given,
    or "Expected `array`, got `str` - at `$[0].dimensions`".
    """
    problem, _, path = error.rpartition(" - at ") if " - at " in error else (error, "", "")
    found = re.findall(r"\[(\d+)\]|\.(\w+)", path)
    keys: Keys = tuple(int(number) if number else name for number, name in found)
    known = (_DimensionDocument if "dimensions" in keys else _RuleDocument).__struct_fields__
    if unknown := _UNKNOWN.fullmatch(problem):
        near = get_close_matches(unknown[1], known, 1)
        fix = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(known)}"
        return (*keys, unknown[1]), f"the key {unknown[1]!r} is not known", fix
    if missing := _MISSING.fullmatch(problem):
        return keys, f"the key {missing[1]!r} is missing", "Add it"
    if not keys:
        return keys, "the rules are no list", 'Begin each of them with "- dataset: "'
    if problem.startswith("Expected `str`"):
        return keys, *_EMPTY
    if problem.startswith(("Expected `object`", "Expected `str | object`")):
        return keys, f"it must be a mapping with the keys {', '.join(known)}", ""
    if keys[-1] == "dimensions":
        return keys, "it must be a list of one or more dimensions, each with a field", ""
    return keys, "it must be a text, or a list of one or more", ""


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
            raise self._error(at, *_EMPTY)
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
