"""The user's own transport: kept next to the collecting one or left out, its secrets hidden."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit.injection import (
    REDACTION,
    ExistingTransport,
    transport_secrets,
    with_collecting,
    without_secrets,
)
from airflow_provider_sparklineage.spark.submit.submission import Submission

T = "spark.openlineage.transport."
USER = f"{T}transports.user."
OURS = {
    f"{T}type": "composite",
    f"{T}continueOnFailure": "true",
    f"{T}transports.sparklineage.type": "file",
    f"{T}transports.sparklineage.location": "/bundle/events.ndjson",
}
HTTP = {f"{T}type": "http", f"{T}url": "http://marquez:5000"}
KEYED = HTTP | {f"{T}auth.type": "api_key", f"{T}auth.apiKey": "s3cr3t"}


def collecting(existing=ExistingTransport.KEEP, **places):
    file = {"type": "file", "location": "/bundle/events.ndjson"}
    return with_collecting(Submission(**places), file, existing)


def test_without_one_events_go_to_the_bundle_only():
    after = collecting()
    assert after.conf == {f"{T}type": "file", f"{T}location": "/bundle/events.ndjson"}


def test_a_users_transport_becomes_a_child_of_a_composite_one():
    after = collecting(conf=HTTP)
    kept = {f"{USER}type": "http", f"{USER}url": "http://marquez:5000"}
    assert after.conf == OURS | kept
    assert after.new_file is None


def test_its_key_goes_to_a_file_with_all_properties_of_the_old_one():
    after = collecting(conf=KEYED, file_properties={"spark.app.name": "shop"})
    assert after.new_file == {"spark.app.name": "shop", f"{USER}auth.apiKey": "s3cr3t"}
    assert "s3cr3t" not in str(after.conf)
    assert after.conf.items() >= (OURS | {f"{USER}auth.type": "api_key"}).items()


def test_a_transport_from_a_file_stays_in_a_file():
    after = collecting(file_properties=KEYED)
    assert after.new_file == {
        f"{USER}type": "http",
        f"{USER}url": "http://marquez:5000",
        f"{USER}auth.type": "api_key",
        f"{USER}auth.apiKey": "s3cr3t",
    }
    assert {k: v for k, v in after.conf.items() if k != REDACTION} == OURS


def test_a_users_composite_transport_gets_one_more_child():
    user = {f"{T}type": "composite", f"{T}transports.a.type": "console"}
    after = collecting(conf=user)
    assert after.conf.items() >= user.items()
    assert after.conf[f"{T}transports.sparklineage.type"] == "file"


def test_the_keys_of_a_composite_transport_go_to_a_file():
    user = {
        f"{T}type": "composite",
        f"{T}transports.a.type": "http",
        f"{T}transports.a.headers.X-Key": "s3cr3t",
    }
    after = collecting(conf=user)
    assert after.new_file == {f"{T}transports.a.headers.X-Key": "s3cr3t"}
    assert "s3cr3t" not in str(after.conf)


@pytest.mark.parametrize(
    "transport",
    [
        pytest.param(
            {"type": "kafka", "topicName": "t", "properties.bootstrap.servers": "k:9092"},
            id="dotted properties",
        ),
        pytest.param({"type": "http", "url": "http://m", "headers.X-A.b": "c"}, id="dotted header"),
        pytest.param({"type": "http", "url": "http://m/api/v1/lineage?key=x"}, id="query in url"),
        pytest.param({"type": "http", "url": "http://m", "unheard": "of"}, id="unknown key"),
        pytest.param({"type": "composite", "transports": "[a;b]"}, id="composite as list"),
    ],
)
def test_a_transport_that_would_break_as_a_child_is_left_alone(transport):
    with pytest.raises(ListenerError, match=r"cannot be combined .* collect_only"):
        collecting(conf={f"{T}{key}": value for key, value in transport.items()})


@pytest.mark.parametrize("place", ["conf", "file_properties"])
def test_collect_only_leaves_it_out_wherever_it_stands(place):
    other = {"spark.app.name": "shop"}
    after = collecting(ExistingTransport.COLLECT_ONLY, **{place: KEYED | other})
    assert after.value("spark.app.name") == "shop"
    left = {key: after.value(key) for key in after.keys() if key.startswith(T)}  # noqa: SIM118
    assert left == {f"{T}type": "file", f"{T}location": "/bundle/events.ndjson"}


# --- secrets -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("auth.apiKey", "s3cr3t"),
        ("headers.Authorization", "Bearer s3cr3t"),
        ("url", "https://user:s3cr3t@marquez"),
        ("url", "https://marquez?key=s3cr3t"),
        ("endpoint", "/lineage?key=s3cr3t"),
        ("urlParams.key", "s3cr3t"),
        ("properties.sasl.jaas.config", 'x required password="s3cr3t";'),
        ("sslContext.keyPassword", "s3cr3t"),
        ("transports.a.auth.apiKey", "s3cr3t"),
        ("transports.a.transport.unheardOf", "s3cr3t"),
    ],
)
def test_what_may_be_a_secret_leaves_the_arguments(key, value):
    before = Submission(conf={f"{T}{key}": value, "a": "b"}, file_properties={"c": "d"})
    after = without_secrets(before)
    assert "s3cr3t" not in str(after.conf)
    assert after.conf["a"] == "b"
    assert after.new_file == {"c": "d", f"{T}{key}": value}
    assert value in transport_secrets(after)


def test_a_token_behind_its_scheme_and_a_password_in_a_url_are_secrets_too():
    conf = {f"{T}headers.Authorization": "Bearer t0k3n-1", f"{T}url": "https://u:p4ssw0rd@marquez"}
    assert {"t0k3n-1", "p4ssw0rd"} <= set(transport_secrets(Submission(conf=conf)))


def test_what_would_hide_half_a_log_is_not_hidden():
    conf = {
        f"{T}headers.Accept": "application/json",
        f"{T}headers.X-Flag": "1",
        f"{T}headers.X-Region": "north of here",
    }
    assert transport_secrets(Submission(conf=conf)) == ("north of here",)
    assert set(without_secrets(Submission(conf=conf)).new_file) == {
        f"{T}headers.X-Flag",
        f"{T}headers.X-Region",
    }


def test_a_reference_to_a_secret_stays_among_the_arguments_and_spark_redacts_the_secret():
    reference = {**KEYED, f"{T}auth.apiKey": "EMR.secret@marquez"}
    after = without_secrets(Submission(conf=reference))
    assert after.new_file is None
    assert transport_secrets(after) == ()
    assert after.conf.items() >= reference.items()
    assert "auth" in after.conf[REDACTION]


def test_without_secrets_nothing_changes():
    before = Submission(conf=HTTP, file_properties={"c": "d"})
    assert without_secrets(before) == before
    assert transport_secrets(before) == ()


@pytest.mark.parametrize(
    ("users", "expected"),
    [(None, "(?i)secret|password|token|access[.]?key"), ("(?i)shop", "(?i)shop")],
    ids=["Spark's default", "the user's"],
)
def test_spark_is_configured_to_redact_them_too(users, expected):
    properties = {} if users is None else {REDACTION: users}
    after = collecting(conf=KEYED, file_properties=properties)
    assert after.conf[REDACTION].startswith(f"{expected}|spark[.]openlineage[.]transport[.]")


PLACES = st.dictionaries(
    st.sampled_from([*KEYED, f"{T}headers.X", f"{T}transports.a.auth.apiKey", REDACTION]),
    st.sampled_from(["http", "composite", "s3cr3t", "http://u:p@h"]),
)


@given(conf=PLACES, file=PLACES)
def test_hiding_twice_changes_nothing(conf, file):
    once = without_secrets(Submission(conf=conf, file_properties=file))
    assert without_secrets(once) == once


# --- events that are sent to the worker -----------------------------------------------------------

SENDING = {
    "type": "http",
    "url": "http://worker:20000",
    "endpoint": "/api/v1/lineage",
    "auth.type": "api_key",
    "auth.apiKey": "t0ken-of-the-try",
}


def test_the_token_of_the_worker_goes_to_a_file_and_is_redacted():
    after = with_collecting(Submission(file_properties={"spark.app.name": "shop"}), SENDING)
    assert after.new_file == {"spark.app.name": "shop", f"{T}auth.apiKey": "t0ken-of-the-try"}
    public = {f"{T}{key}": value for key, value in SENDING.items() if key != "auth.apiKey"}
    assert {k: v for k, v in after.conf.items() if k != REDACTION} == public
    assert REDACTION in after.conf


@pytest.mark.parametrize(
    "user",
    [
        HTTP,
        KEYED,
        {f"{T}type": "composite", f"{T}transports.a.type": "console"},
    ],
    ids=["public", "with a key", "composite"],
)
def test_next_to_a_users_transport_the_token_goes_to_a_file_too(user):
    after = with_collecting(Submission(conf=user), SENDING)
    ours = f"{T}transports.sparklineage."
    assert after.value(f"{T}type") == "composite"
    assert {key: after.value(f"{ours}{key}") for key in SENDING} == SENDING
    assert "t0ken" not in str(after.conf)
    assert with_collecting(after, SENDING) == after


def test_sending_is_set_up_once():
    once = with_collecting(Submission(), SENDING)
    assert with_collecting(once, SENDING) == once


def test_properties_of_a_transport_without_a_type_do_not_become_ours():
    stray = {f"{T}compression": "gzip", f"{T}headers.X-Tenant": "shop"}
    after = with_collecting(Submission(conf=stray, file_properties=stray), SENDING)
    assert [key for key in after.keys() if key in stray] == []  # noqa: SIM118  (a method)
