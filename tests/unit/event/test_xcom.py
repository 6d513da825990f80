"""The event as an XCom: readable where it fits, bounded always, refused with a sentence."""

from __future__ import annotations

import base64
import copy
import json
import zlib

import pytest

from airflow_provider_sparklineage.event import xcom
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.model.exceptions import DocumentError


@pytest.fixture(scope="session")
def event():
    from tests.conftest import Recorded

    return Recorded("staging_chain").event


def never(_max_bytes):
    pytest.fail("What fits is not made smaller.")


def size(value):
    return len(json.dumps(value))


def test_an_event_that_fits_is_the_value_itself(event):
    assert xcom.encode(Written(event), size(event), never) == event
    assert xcom.decode(event) == event


def test_a_larger_one_is_compressed(event):
    value = xcom.encode(Written(event), size(event) - 1, never)
    assert size(value) < size(event)
    assert value != event
    assert xcom.decode(json.loads(json.dumps(value))) == event


def test_what_is_too_large_for_that_goes_without_detail(event):
    asked = []

    def smaller(max_bytes):
        asked.append(max_bytes)
        return event | {"inputs": [], "outputs": event["outputs"][: max(0, max_bytes // 3000)]}

    value = xcom.encode(Written(event), 1500, smaller)
    assert size(value) <= 1500
    assert asked == sorted(asked, reverse=True)
    assert xcom.decode(value)["job"] == event["job"]


def test_nothing_is_better_than_too_much(event):
    assert xcom.encode(Written(event), 100, lambda _: event) is None


def test_an_event_that_gets_no_smaller_is_not_tried_again(event):
    asked = []
    assert xcom.encode(Written(event), 100, lambda size: asked.append(size) or event) is None
    assert len(asked) == 2


def test_the_json_of_an_event_is_made_once_for_all_who_keep_it(event, monkeypatch):
    made = []
    dumps = json.dumps
    monkeypatch.setattr(json, "dumps", lambda value: made.append(value) or dumps(value))
    written = Written(event)
    assert xcom.encode(written, size(event), never) is event
    assert json.loads(written.text) == event
    assert made.count(event) == 1 + 1  # and one for its size, in this test


def test_text_of_any_kind_survives(event):
    hostile = copy.deepcopy(event)
    hostile["job"]["name"] = "a\0b\u202e<script>'\"\ud800"
    value = xcom.encode(Written(hostile), size(hostile), never)
    assert xcom.decode(value) == hostile


@pytest.mark.parametrize(("name", "plain"), [("a\0b", False), ("\ud800", False), ("ж", True)])
def test_what_a_database_cannot_hold_as_json_is_compressed(event, name, plain):
    named = event | {"job": {"namespace": "x", "name": name}}
    value = xcom.encode(Written(named), size(named), never)
    assert (value == named) is plain
    assert xcom.decode(value) == named


def compressed(value):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.b64encode(zlib.compress(text)).decode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda _: None, "no lineage of a Spark job", id="nothing"),
        pytest.param(lambda _: [1], "no lineage of a Spark job", id="a list"),
        pytest.param(lambda e: e | {"run": {"facets": []}}, "no lineage", id="another event"),
        pytest.param(lambda e: e | {"inputs": {}}, None, id="no inputs"),
        pytest.param(lambda e: e | {"inputs": {"a": 1}}, "inputs are no list", id="inputs"),
        pytest.param(lambda e: e | {"outputs": [{"name": 1}]}, "outputs are no list", id="output"),
        pytest.param(lambda _: {"encoding": "zstd"}, "newer airflow-provider", id="encoding"),
        pytest.param(lambda _: {"encoding": "zlib+base64"}, "damaged", id="no text"),
        pytest.param(
            lambda _: {"encoding": "zlib+base64", "event": "AAAA"}, "damaged", id="not compressed"
        ),
        pytest.param(
            lambda _: {"encoding": "zlib+base64", "event": compressed(1)}, "no lineage", id="else"
        ),
        pytest.param(
            lambda _: {"encoding": "zlib+base64", "event": compressed(b"[" * 100_000)},
            "damaged",
            id="endless lists",
        ),
        pytest.param(
            lambda e: e | {"run": {"facets": {"sparkLineage_capture": {"degradations": "x"}}}},
            "degradations are no list",
            id="degradations",
        ),
    ],
)
def test_what_cannot_be_shown_is_refused_with_a_sentence(event, change, message):
    value = change(copy.deepcopy(event))
    if message is None:
        assert xcom.decode(value) == value
        return
    with pytest.raises(DocumentError, match=message):
        xcom.decode(value)


@pytest.mark.parametrize(
    ("version", "shown"),
    [("1-0-0", True), ("1-7-0", True), ("0-9-0", True), ("2-0-0", False), ("", True)],
)
def test_another_version_is_shown_as_long_as_it_is_of_the_same_kind(event, version, shown):
    other = copy.deepcopy(event)
    facet = other["run"]["facets"]["sparkLineage_capture"]
    facet["_schemaURL"] = f"urn:airflow-provider-sparklineage:facet:capture:{version}"
    if shown:
        assert xcom.decode(other) == other
        return
    with pytest.raises(DocumentError, match=r"newer airflow-provider-sparklineage \(format 2"):
        xcom.decode(other)
