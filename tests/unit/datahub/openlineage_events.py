"""Events of any producer: with every facet that OpenLineage has, as it should be and as it is not.

Facets are made by the classes of OpenLineage's client, which are made from its JSON schemas: a
facet that the client will have one day is tested with it.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import types
import typing
from enum import Enum
from functools import cache
from typing import Any

import attr
from hypothesis import strategies as st
from openlineage.client import generated
from openlineage.client.generated import base

RUN_ID = "01968e2a-7c1b-7def-8123-456789abcdef"

_HOSTILE = (
    *("a,b", "sum(a)", "a%2Cb", "␟", "x" * 600, "漢" * 300, "A", "a", " a ", "a.b", "a[0].b"),
    *(
        "\x00",
        "\ud800",
        "\n",
        "~1/~0",
        "",
        "null",
        "struct<a:int,b:array<int>>",
    ),
)
_WORDS = (*_HOSTILE, "id", "day", "orders", "GET", "string", "int", "map<string,int>", "true", "5")
_NAMESPACES = (
    "s3://lake",
    "file",
    "hive://m:9083",
    "arn:aws:glue:eu:1",
    "",
    "a,b(c)",
    "kafka://b:1",
)
_BY_NAME = {
    "namespace": st.sampled_from(_NAMESPACES),
    "name": st.sampled_from(("orders", "dag.task", *_HOSTILE)),
    "field": st.sampled_from(("id", "day", "a,b", "A", "a")),
    "runId": st.sampled_from((RUN_ID, "no uuid", "")),
    "nominalStartTime": st.sampled_from(("2026-01-01T00:00:00Z", "2026-01-01", "soon", "")),
}
_BY_NAME["nominalEndTime"] = _BY_NAME["nominalStartTime"]
_BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: st.sampled_from(_WORDS) | st.text(max_size=8),
    int: st.integers(-(2**65), 2**65) | st.integers(0, 9),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
    Any: st.none() | st.sampled_from(_WORDS) | st.integers(),
}


def facet_classes(kind: type) -> list[type]:
    """Give the facets that the client has of a kind, e.g. ``RunFacet``."""
    found = []
    for one in pkgutil.iter_modules(generated.__path__):
        module = importlib.import_module(f"{generated.__name__}.{one.name}")
        found += [
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, kind) and value is not kind
        ]
    return sorted(set(found), key=lambda cls: cls.__name__)


_KEYS = {"Datasource": "dataSource", "DatasetVersion": "version", "SQL": "sql"}
_KEYS |= {"ProcessingEngine": "processing_engine"}
_KINDS = ("InputDatasetFacet", "OutputDatasetFacet", "DatasetFacet", "JobFacet", "RunFacet")


def key_of(facet: type) -> str:
    """Give the key of a facet, as the URL of its schema has it but for four."""
    name = facet.__name__
    for kind in _KINDS:
        name = name.removesuffix(kind)
    if name in ("InputSubset", "OutputSubset"):
        return "subset"
    return _KEYS.get(name, name[:1].lower() + name[1:])


@cache
def values(kind: Any) -> st.SearchStrategy[Any]:
    """Give values of a type of the client's classes, as JSON."""
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*map(values, args))
    if origin is list:
        return st.lists(values(args[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(values(str), values(args[1]), max_size=3)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from([one.value for one in kind])
    if isinstance(kind, type) and attr.has(kind):
        return st.deferred(lambda: _objects(kind))
    return _BY_TYPE[Any]


@cache
def _objects(cls: type) -> st.SearchStrategy[dict[str, Any]]:
    module = importlib.import_module(cls.__module__)
    hints = typing.get_type_hints(cls, vars(typing) | vars(base) | vars(module))
    fields = {one.name: hints[one.name] for one in attr.fields(cls) if one.init}
    needed = {one.name for one in attr.fields(cls) if one.default is attr.NOTHING}
    known = {
        name: _BY_NAME[name] if name in _BY_NAME and hint is str else values(hint)
        for name, hint in fields.items()
        if not name.startswith("_")
    }
    return st.fixed_dictionaries(
        {name: one for name, one in known.items() if name in needed},
        optional={name: one for name, one in known.items() if name not in needed},
    )


def facets(kind: type) -> st.SearchStrategy[dict[str, Any]]:
    """Give some or all facets of a kind."""
    return st.fixed_dictionaries(
        {}, optional={key_of(cls): values(cls) for cls in facet_classes(kind)}
    )


def _datasets(side: str, kind: type) -> st.SearchStrategy[list[dict[str, Any]]]:
    document = st.fixed_dictionaries(
        {"namespace": _BY_NAME["namespace"], "name": _BY_NAME["name"]},
        optional={"facets": facets(base.DatasetFacet), side: facets(kind)},
    )
    return st.lists(document, max_size=3)


EVENTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "eventType": st.sampled_from(("COMPLETE", "COMPLETE", "START", "FAIL", "ABORT", "RUNNING")),
        "eventTime": st.sampled_from(("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.1+02:00")),
        "producer": st.sampled_from(("https://github.com/apache/airflow", "https://x.org")),
        "run": st.fixed_dictionaries(
            {"runId": st.just(RUN_ID)}, optional={"facets": facets(base.RunFacet)}
        ),
        "job": st.fixed_dictionaries(
            {"namespace": st.just("airflow"), "name": _BY_NAME["name"].filter(bool)},
            optional={"facets": facets(base.JobFacet)},
        ),
    },
    optional={
        "inputs": _datasets("inputFacets", base.InputDatasetFacet),
        "outputs": _datasets("outputFacets", base.OutputDatasetFacet),
    },
)
"""RunEvents as the schemas have them, or nearly: names and texts are hostile."""

JUNK: tuple[Any, ...] = (None, 0, -1, 2**70, True, 1.5, "", "x", [], [None], [[]], {}, {"x": None})


def spoilt(event: dict[str, Any], seed: int, count: int = 3) -> dict[str, Any]:
    """Give an event with some of its values replaced by what they should not be."""
    chance = random.Random(seed)
    for _ in range(chance.randint(1, count)):
        path = chance.choice(list(_paths(event)))
        event = with_value(event, path, chance.choice(JUNK))
    return event


def _paths(value: Any, above: tuple[Any, ...] = ()) -> typing.Iterator[tuple[Any, ...]]:
    if above:
        yield above
    below = value.items() if isinstance(value, dict) else ()
    for key, one in enumerate(value) if isinstance(value, list) else below:
        yield from _paths(one, (*above, key))


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Give a document with another value at a path."""
    if not path:
        return value
    copy = document.copy()
    copy[path[0]] = with_value(document[path[0]], path[1:], value)
    return copy
