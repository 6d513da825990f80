"""A ``sparklineage`` connection: what its fields mean, and the errors for wrong ones."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from airflow_provider_sparklineage.model.exceptions import ConnectionFieldsError
from airflow_provider_sparklineage.settings.connection import (
    DATAHUB_TRANSPORT,
    DATAHUB_TYPES,
    DEFAULT_CONN_ID,
    api_url,
    connection_type,
    read,
    source_of,
    transports_of,
)
from airflow_provider_sparklineage.settings.options import OPTIONS
from airflow_provider_sparklineage.settings.resolution import resolve

HTTP = {"type": "http", "url": "http://marquez:5000/", "auth": {"type": "api_key", "apiKey": "k1"}}


def connection(extra=None, **fields):
    text = extra if isinstance(extra, str | None) else json.dumps(extra)
    return read("lineage", extra=text, **fields)


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({}, None),
        ({"host": "marquez"}, "http://marquez"),
        ({"host": "marquez", "port": 5000}, "http://marquez:5000"),
        ({"host": "marquez", "port": 443, "schema": "https"}, "https://marquez:443"),
        ({"host": "http://marquez:5000"}, "http://marquez:5000"),
        ({"host": "https://lineage.example.org/"}, "https://lineage.example.org"),
        ({"host": "https://example.org:8443", "port": 1}, "https://example.org:8443"),
        ({"host": "http://example.org/marquez/api/v1"}, "http://example.org/marquez"),
        ({"host": "[::1]", "port": 5000}, "http://[::1]:5000"),
    ],
)
def test_host_port_and_schema_are_the_url(fields, url):
    assert connection(**fields).backend_url == url


@pytest.mark.parametrize(
    "fields",
    [
        {"host": "marquez", "schema": "ftp"},
        {"host": "http://"},
        {"host": "http://user:pass@marquez"},
        {"host": "http://[::1"},
        {"host": "marquez:port"},
    ],
)
def test_what_is_no_url_is_named(fields):
    with pytest.raises(
        ConnectionFieldsError,
        match=r"^Connection lineage has no URL as its host\. .* http://marquez",
    ):
        connection(**fields)


@pytest.mark.parametrize(
    "url",
    ["http://m:5000", "http://m:5000/", "http://m:5000/api/v1", "http://m:5000/api/v1/lineage"],
)
def test_what_people_add_to_a_url_is_removed(url):
    assert api_url(url) == "http://m:5000"


def test_the_transport_gives_the_url_of_the_backend_if_no_host_does():
    alone = connection({"transport": HTTP})
    assert (alone.backend_url, alone.api_key) == ("http://marquez:5000", "k1")
    both = {"type": "composite", "transports": {"a": {"type": "console"}, "b": HTTP}}
    assert connection({"transport": both}).backend_url == "http://marquez:5000"
    assert connection({"transport": {"type": "console"}}).backend_url is None


@pytest.mark.parametrize(
    ("extra", "fields", "url", "key"),
    [
        pytest.param(
            {},
            {"host": "m", "port": 5000},
            "the connection's host and port",
            "the connection's password",
            id="fields of their own",
        ),
        pytest.param(
            {"transport": HTTP},
            {"host": "http://marquez:5000"},
            "the connection's host (API URL in its form)",
            "transport.auth in the connection's extra",
            id="a URL as the host",
        ),
        pytest.param(
            {},
            {"host": "http://m", "port": 5000},
            "the connection's host (API URL in its form) and its port, which the form does not "
            "show",
            "the connection's password",
            id="a URL as the host, and a port from before",
        ),
        pytest.param(
            {},
            {"host": "http://m:5000", "port": 80},
            "the connection's host (API URL in its form)",
            "the connection's password",
            id="a URL with a port as the host, and a port from before",
        ),
        pytest.param(
            {"transport": HTTP},
            {"password": "k2"},
            "transport.url in the connection's extra",
            "the connection's password",
            id="a transport",
        ),
        pytest.param(
            {"transport": {"type": "composite", "transports": {"a": {"type": "kafka"}, "b": HTTP}}},
            {},
            "transport.transports.b.url in the connection's extra",
            "transport.transports.b.auth in the connection's extra",
            id="one of several transports",
        ),
        pytest.param(
            {"transport": {"type": "composite", "transports": [{"type": "kafka"}, HTTP]}},
            {"password": "k2"},
            "transport.transports.1.url in the connection's extra",
            "the connection's password",
            id="one of a list of transports",
        ),
        pytest.param(
            {"transport": {"type": "transform", "transport": HTTP}},
            {"password": "k2"},
            "transport.transport.url in the connection's extra",
            "the connection's password",
            id="a transport within another",
        ),
    ],
)
def test_the_place_of_the_url_and_of_its_key_is_known(extra, fields, url, key):
    place = connection(extra, **fields).place
    assert (place.name("host", "port"), place.key) == (url, key)


def test_a_place_names_the_parts_that_are_wrong():
    fields = connection({}, host="m").place
    assert fields.name("schema") == "the connection's schema"
    assert fields.name("port", "schema", "host") == "the connection's host, port and schema"
    whole = connection({"transport": HTTP}).place
    assert whole.name("schema") == whole.name("host", "port", "schema")


def test_another_host_is_not_given_the_transports_key():
    assert connection({"transport": HTTP}, host="another").api_key is None
    assert connection({"transport": HTTP}, host="marquez", port=5000).api_key == "k1"
    assert connection({"transport": HTTP}, host="another", password="k2").api_key == "k2"


def test_keys_are_not_printed():
    found = connection({"transport": HTTP}, password="k2")
    assert "k1" not in repr(found)
    assert "k2" not in repr(found)


def test_the_extra_sets_options_next_to_the_clients_configuration():
    found = connection(
        {
            "transport": HTTP,
            "facets": {"environment_variables": ["X"]},
            "observe": False,
            "max_partitions": 7,
            "column_lineage": None,
            "capture_location": "",
        }
    )
    assert found.values == {"observe": False, "max_partitions": 7}
    settings = resolve(source_of(found))
    assert (settings.observe, settings.max_partitions) == (False, 7)


@pytest.mark.parametrize("extra", [None, "", "  ", "{}"])
def test_an_extra_may_be_empty(extra):
    assert connection(extra).values == {}


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ('{"observe": tru', "has an extra that is no JSON .*in line 1.* as a JSON object"),
        ('["observe"]', "has an extra that is no JSON object"),
        ('{"max_partitons": 7}', "has an unknown key 'max_partitons' .* mean max_partitions"),
        ('{"colour": 7}', "has an unknown key 'colour' .* There are: .*max_partitions"),
        ('{"disabled": true}', r"sets disabled, which is no option .* \[sparklineage\] disabled"),
        ('{"transport": "{}"}', "has a transport that is no JSON object with a type"),
        ('{"transport": {"url": "http://m"}}', "has a transport that is no JSON object with a"),
    ],
)
def test_a_wrong_extra_is_reported_with_the_fix(extra, message):
    with pytest.raises(ConnectionFieldsError, match=f"^Connection lineage {message}"):
        connection(extra)


def test_the_text_of_a_broken_extra_is_not_repeated():
    with pytest.raises(ConnectionFieldsError) as raised:
        connection('{"transport": {"apiKey": "hunter2"}')
    assert "hunter2" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_a_connection_of_another_type_is_refused():
    with pytest.raises(ConnectionFieldsError, match=r"is of type 'spark'\. Give lineage_conn_id a"):
        read(DEFAULT_CONN_ID, conn_type="spark", host="local[*]")


def test_the_form_has_a_field_for_every_option_that_a_connection_may_have():
    fields = connection_type()["conn-fields"]
    options = [o.name for o in OPTIONS if o.in_connection and o.name != "web_url"]
    assert list(fields) == ["web_url", "transport", *options]
    for name, field in fields.items():
        assert "null" in field["schema"]["type"], f"{name} could not be left empty"
        assert "default" not in field["schema"], f"{name} would be set by saving the form"


def test_the_form_begins_with_one_field_for_the_url_and_one_for_the_key():
    fields = connection_type()["ui-field-behaviour"]
    assert set(fields["relabeling"]) == {"host", "password"}
    assert set(fields["hidden-fields"]) == {"login", "port", "schema"}
    # In the form they look like values.
    assert all(text.startswith(("e.g. ", "only if ")) for text in fields["placeholders"].values())


@pytest.mark.parametrize(
    ("fields", "transport"),
    [
        ({"host": "http://m:5000"}, {"type": "http", "url": "http://m:5000"}),
        (
            {"host": "m", "port": 5000, "schema": "https", "password": "k2"},
            {
                "type": "http",
                "url": "https://m:5000",
                "auth": {"type": "airflow_connection_api_key"},
            },
        ),
        ({}, {"type": "http", "url": "http://marquez:5000"}),
    ],
    ids=["url", "parts and key", "nothing"],
)
def test_the_transport_that_the_fields_stand_for(fields, transport):
    assert json.loads(connection(**fields).wanted_transport) == transport


@pytest.mark.parametrize(
    ("page", "port"),
    [("README.md", ":3000"), ("docs/connection.md", ":3000"), ("docs/datahub.md", ":9002")],
)
def test_the_connection_on_a_page_looks_where_airflow_sends(page, port):
    text = (Path(__file__).parents[3] / page).read_text().replace("\\\n", "")
    [command] = re.findall(r"airflow connections add sparklineage_default [^`]+?}'", text)
    words = shlex.split(command)[4:]
    fields = dict(zip((w.removeprefix("--conn-") for w in words[::2]), words[1::2], strict=True))
    assert fields.pop("type") == "sparklineage"
    found = read("sparklineage_default", **fields)
    assert found.transport == json.loads(found.wanted_transport)
    assert found.values["web_url"].endswith(port)


def test_what_the_form_saves_of_empty_fields_sets_nothing():
    empty = dict.fromkeys(connection_type()["conn-fields"])
    assert connection(empty).values == {}
    assert connection({**empty, "transport": {}}).transport is None


def test_transports_to_datahub_are_found_wherever_they_stand():
    datahub = {"type": DATAHUB_TRANSPORT, "server": "http://gms:8080"}
    marquez = {"type": "http", "url": "http://marquez:5000"}
    dev = {**datahub, "env": "DEV"}
    composite = {"type": "composite", "transports": {"dh": datahub, "m": marquez}}
    listed = {"type": "composite", "transports": [marquez, {"type": "transform", "transport": dev}]}
    assert list(transports_of(DATAHUB_TYPES, datahub)) == [("transport", datahub)]
    assert list(transports_of(DATAHUB_TYPES, composite)) == [("transport.transports.dh", datahub)]
    assert list(transports_of(DATAHUB_TYPES, listed)) == [("transport.transports.1.transport", dev)]
    assert list(transports_of(DATAHUB_TYPES, marquez)) == []


DATAHUB = {"type": DATAHUB_TRANSPORT, "server": "http://gms:8080/", "token": "t1"}
BOTH = {"type": "composite", "transports": {"marquez": HTTP, "datahub": DATAHUB}}


@pytest.mark.parametrize(
    ("extra", "url", "key", "place"),
    [
        ({"transport": DATAHUB}, "http://gms:8080", "t1", "transport.{}"),
        (
            {"transport": {**DATAHUB, "token": None, "auth": HTTP["auth"]}},
            "http://gms:8080",
            "k1",
            "transport.{}",
        ),
        ({"transport": BOTH}, "http://marquez:5000", "k1", "transport.transports.marquez.{}"),
        (
            {"transport": BOTH, "backend": "datahub"},
            "http://gms:8080",
            "t1",
            "transport.transports.datahub.{}",
        ),
    ],
    ids=["to DataHub", "with a provider of tokens", "to both", "to both, and at DataHub"],
)
def test_without_a_url_lineage_is_looked_at_where_it_is_sent(extra, url, key, place):
    found = connection(extra)
    assert (found.backend_url, found.api_key) == (url, key)
    keys = ("server", "token") if "gms" in url else ("url", "auth")
    assert found.place.url == f"{place.format(keys[0])} in the connection's extra"
    assert found.place.key == f"{place.format(keys[1])} in the connection's extra"


def test_a_datahub_elsewhere_is_not_given_the_token_of_the_transport():
    assert connection({"transport": DATAHUB}, host="http://other:8080").api_key is None


def test_the_transport_to_datahub_that_the_fields_stand_for():
    found = connection({"backend": "datahub"}, host="http://gms:8080", password="t1")
    assert json.loads(found.wanted_transport) == {
        "type": DATAHUB_TRANSPORT,
        "server": "http://gms:8080",
        "auth": {"type": "airflow_connection_api_key"},
    }
    assert json.loads(connection({"backend": "datahub"}).wanted_transport) == {
        "type": DATAHUB_TRANSPORT,
        "server": "http://gms:8080",
    }
