"""Events of runs whose parts may be anything: they are left out, and the rest is stored."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.datahub.airflow_events import FLAKY, converted, event_of, recorded, with_run_facet

# What DataHub's server stores in a string: any text. Numbers are those of JSON.
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_HEADER = ("eventTime", "eventType", "producer")


def paths(value, path=()):
    """Give where the parts of a document are."""
    for key, part in value.items():
        yield (*path, key)
        if isinstance(part, dict):
            yield from paths(part, (*path, key))


PATHS = sorted({path for event in recorded() for path in paths(event) if path[0] in ("run", "job")})


@given(st.sampled_from([*PATHS, *((key,) for key in _HEADER)]), ANYTHING)
@settings(max_examples=60, deadline=None)
def test_any_part_may_be_anything(path, value):
    for event in (event_of(FLAKY, "FAIL"), event_of("bad", "FAIL")):
        part = event
        for key in path[:-1]:
            part = part.setdefault(key, {})
        part[path[-1]] = value
        converted(event)


@pytest.mark.parametrize(
    "text",
    [
        "a,b",
        "(",
        ")",
        "␟",
        "%2C",
        "\x00\x1f",
        "\ud800",
        "界" * 500,
        " ",
        "urn:li:corpuser:x",
        "../~0~1/",
    ],
)
def test_any_name_is_part_of_a_urn_and_of_a_path(text):
    owners = {"owners": [{"name": text}]}
    event = event_of(FLAKY, "FAIL")
    event["job"]["name"] = f"{text}.{text}"
    event["run"]["runId"] = text
    event["job"]["facets"] |= {
        "ownership": owners,
        "tags": {"tags": [{"key": text, "value": text}]},
    }
    event["run"]["facets"]["parent"] = {"job": {"name": text}, "run": {"runId": text}}
    facets = {"sparkLineage_capture": {"degradations": [{"code": text, "message": text}]}}

    assert converted(with_run_facet(event, **facets))
