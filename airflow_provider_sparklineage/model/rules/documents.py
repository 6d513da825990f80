"""Documents of partitioning rules, as YAML and JSON have them, to definitions, and back."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.datasets import untrimmed
from airflow_provider_sparklineage.model.globs import ANY_DEPTH
from airflow_provider_sparklineage.model.layouts import Layout, PartitionSpec
from airflow_provider_sparklineage.model.partitioning import IDENTITY, Dimension
from airflow_provider_sparklineage.model.timestamps import check_format

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_provider_sparklineage.model.rules.text import Keys, Source

CheckedRule = tuple[tuple[str, ...], PartitionSpec]
"""Globs of datasets, and how those are partitioned."""


def checked(documents: object, source: Source) -> tuple[CheckedRule, ...]:
    """Check documents.

    :param source: where they are from, for errors
    :raise RulesError: if one is wrong; names its place and key, and what to do
    """
    return _Reading(source).rules(documents)


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


_RULE_KEYS = ("dataset", "dimensions", "layout", "description")
_DIMENSION_KEYS = ("field", "fields", "transform", "name", "format")


class _Reading:
    """Documents to rules, with an error that names the place of what is wrong."""

    def __init__(self, source: Source) -> None:
        self._error = source.error

    def rules(self, documents: object) -> tuple[CheckedRule, ...]:
        if not isinstance(documents, (list, tuple)):
            raise self._error((), "the rules are no list", 'Begin each of them with "- dataset: "')
        return tuple(self._rule(document, (n,)) for n, document in enumerate(documents))

    def _rule(self, document: object, at: Keys) -> CheckedRule:
        found = self._mapping(document, at, _RULE_KEYS)
        if "dataset" not in found:
            raise self._error(at, "the key 'dataset' is missing", "Add it")
        if "dimensions" not in found and "layout" not in found:
            raise self._error(at, "the key 'dimensions' is missing", "Add it, or a layout")
        globs = self._texts(found["dataset"], (*at, "dataset"))
        datasets = tuple(
            self._glob(glob, (*at, "dataset") if len(globs) == 1 else (*at, "dataset", n))
            for n, glob in enumerate(globs)
        )
        dimensions: tuple[Dimension, ...] = ()
        if "dimensions" in found:
            dimensions = self._dimensions(found["dimensions"], (*at, "dimensions"))
        layout = None
        if "layout" in found:
            layout = self._layout(found["layout"], dimensions, (*at, "layout"))
            formats = dict(layout.formats)
            # A layout alone names its dimensions well enough.
            dimensions = dimensions or tuple(Dimension.of(label) for label in layout.labels)
            dimensions = tuple(_with_format(d, formats.get(d.label, "")) for d in dimensions)
            if not layout.has_clear_start and any(ANY_DEPTH in glob for glob in datasets):
                raise self._error(
                    (*at, "dataset"),
                    "with ** it is open where a dataset ends and its layout begins, because the "
                    "layout's first folder may have any name",
                    "Write a * for each folder",
                )
        description = ""
        if "description" in found:
            description = self._text(found["description"], (*at, "description"))
        return datasets, PartitionSpec(dimensions, layout, description)

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

    def _dimensions(self, given: object, at: Keys) -> tuple[Dimension, ...]:
        if not isinstance(given, (list, tuple)) or not given:
            raise self._error(at, "it must be a list of one or more dimensions, each with a field")
        dimensions = tuple(self._dimension(one, (*at, n)) for n, one in enumerate(given))
        labels = [d.label for d in dimensions]
        for n, label in enumerate(labels):
            if label in labels[:n]:
                problem = f"there are two dimensions {label!r}"
                raise self._error((*at, n), problem, "Give one of them another name")
        return dimensions

    def _dimension(self, given: object, at: Keys) -> Dimension:
        if isinstance(given, str):
            return Dimension.of(self._text(given, at))
        found = self._mapping(given, at, _DIMENSION_KEYS)
        if ("field" in found) == ("fields" in found):
            raise self._error(at, "it must have a field, or a list of fields, and not both")
        key = "field" if "field" in found else "fields"
        one_or_many = self._text if key == "field" else self._texts
        fields = one_or_many(found[key], (*at, key))
        texts = {
            key: self._text(found[key], (*at, key))
            for key in ("transform", "name", "format")
            if key in found
        }
        if "format" in texts:
            try:
                check_format(texts["format"])
            except ValueError as e:
                raise self._error((*at, "format"), str(e)) from e
        return Dimension(
            (fields,) if isinstance(fields, str) else fields,
            texts.get("transform", IDENTITY),
            texts.get("name", ""),
            texts.get("format", ""),
        )

    def _layout(self, given: object, dimensions: tuple[Dimension, ...], at: Keys) -> Layout:
        try:
            layout = Layout.of(self._text(given, at), dimensions)
        except ValueError as e:
            raise self._error(at, str(e)) from e
        labels = [d.label for d in dimensions]
        for label in layout.labels:
            if labels and label not in labels:
                problem = f"the field {label!r} is no dimension of the rule ({', '.join(labels)})"
                raise self._error(at, problem, "Add it to the dimensions, or rename it")
        return layout

    def _mapping(self, given: object, at: Keys, known: Collection[str]) -> dict[str, object]:
        if not isinstance(given, dict):
            raise self._error(at, f"it must be a mapping with the keys {', '.join(known)}")
        for key in given:
            if key not in known:
                near = get_close_matches(str(key), known, 1)
                problem = f"the key {key!r} is not known"
                fix = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(known)}"
                raise self._error((*at, str(key)), problem, fix)
        return given

    def _texts(self, given: object, at: Keys) -> tuple[str, ...]:
        if isinstance(given, str):
            return (self._text(given, at),)
        if not isinstance(given, (list, tuple)) or not given:
            raise self._error(at, "it must be a text, or a list of one or more")
        return tuple(self._text(one, (*at, n)) for n, one in enumerate(given))

    def _text(self, given: object, at: Keys) -> str:
        if not isinstance(given, str) or not given.strip():
            raise self._error(at, "it must be a text that is not empty", "Put it in quotes")
        return given.strip()


def _with_format(dimension: Dimension, known: str) -> Dimension:
    return Dimension(
        dimension.fields, dimension.transform, dimension.name, dimension.format or known
    )
