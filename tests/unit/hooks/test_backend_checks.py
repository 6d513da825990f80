"""Asking DataHub's server: what is found, what is to be done about it, and nothing is stored."""

from __future__ import annotations

import json
import socket

import pytest
from openlineage.client.transport.http import TokenProvider

from airflow_provider_sparklineage.event.backends.checks import Endpoint
from airflow_provider_sparklineage.hooks.backend_checks import check, check_transport
from airflow_provider_sparklineage.settings.checks import Status, UrlPlace
from tests.unit.datahub.gms import PROPOSALS, TOKEN, Scripted, gms

PLACE = "Airflow's [openlineage]"
DOCTOR = "urn:li:dataset:(urn:li:dataPlatform:spark,sparklineage.doctor,PROD)"
HTML = Scripted(200, "<html>Sign in</html>", (("Content_Type", "text/html"),))


def checked(**given):
    """Check a transport with this configuration."""
    return check_transport(given, "transport", PLACE)


def summary(checks):
    return [(one.name, one.status) for one in checks]


def test_a_datahub_is_recognised_and_takes_proposals_and_stores_none():
    with gms() as server:
        checks = checked(server=server.url, token=TOKEN)
    assert summary(checks) == [("DataHub, server", Status.OK), ("DataHub, write", Status.OK)]
    assert checks[0].message == f"DataHub v1.3.0 answers at {server.url}."
    assert server.asked == ["/config", PROPOSALS]
    assert server.stored == []


@pytest.mark.parametrize(
    ("version", "kind", "status"),
    [
        ("v0.15.0.1", {}, Status.WARNING),
        ("0.14.1", {"serverEnv": "core"}, Status.WARNING),
        ("v0.3.12-acryl", {"serverEnv": "cloud"}, Status.OK),
        ("v1.0.0", {"serverEnv": "core"}, Status.OK),
        ("null", {}, Status.OK),
    ],
)
def test_a_server_that_is_too_old_is_a_warning(version, kind, status):
    versions = {"acryldata/datahub": {"version": version}}
    config = json.dumps({"noCode": "true", "versions": versions, "datahub": kind})
    with gms(config=Scripted(200, config)) as server:
        checks = checked(server=server.url, token=TOKEN)
    assert summary(checks) == [("DataHub, server", status), ("DataHub, write", Status.OK)]
    assert ("Before 1.0" in checks[0].message) is (status is Status.WARNING)


@pytest.mark.parametrize(
    "answer",
    [
        Scripted(200, '{"value": "success"}'),
        Scripted(400, '{"message": "Unknown aspect sparkLineageDoctor for entity dataset"}'),
        Scripted(500, '{"message": "Unknown aspect sparkLineageDoctor for entity dataset"}'),
    ],
    ids=["left out", "bad request", "server error"],
)
def test_of_all_versions_the_refusal_of_an_unknown_aspect_is_understood(answer):
    with gms(answer) as server:
        assert checked(server=server.url)[-1].status is Status.OK


@pytest.mark.parametrize(
    ("answer", "message", "fix"),
    [
        (HTML, "with a web page: nothing can be stored", "(9002) has it below /api/gms"),
        (Scripted(200, '{"appVersion": "1"}'), "200, and not as DataHub's GMS", "at port 8080"),
        (Scripted(200, "[]"), "200, and not as DataHub's GMS", f"transport.server in {PLACE}"),
        (Scripted(404), "404, and not as DataHub's GMS", f"transport.server in {PLACE}"),
        (Scripted(302, headers=(("Location", "https://sso/x?s=1"),)), "to https://sso.", "log"),
        (Scripted(401), "without a valid key", f"into transport.token in {PLACE}"),
        (Scripted(503), "does not reach it", "Start the backend"),
    ],
)
def test_what_is_no_gms_is_reported_and_sent_nothing(answer, message, fix):
    with gms(config=answer) as server:
        [found] = checked(server=server.url, token=TOKEN)
    assert (found.name, found.status) == ("DataHub, server", Status.FAILED)
    assert message in found.message
    assert fix in found.fix
    assert server.requests == []


@pytest.mark.parametrize(
    ("settings", "given", "message", "fix"),
    [
        ({}, {}, "without a valid key", f"into transport.token in {PLACE}"),
        ({}, {"token": "another"}, "without a valid key", f"into transport.token in {PLACE}"),
        (
            {"forbids": {DOCTOR}},
            {"token": TOKEN},
            f"The user of the token in transport.token in {PLACE} may not change datasets",
            "privilege Edit Entity",
        ),
        (
            {"forbids": {DOCTOR}},
            {"auth": {"type": "api_key", "apiKey": TOKEN}},
            f"The user of the token in transport.auth in {PLACE} may not",
            "privilege",
        ),
        ({"always": Scripted(405)}, {}, "answers 405 to a proposal", "let no POST through"),
        ({"always": Scripted(413, "sorry")}, {}, "answers 413 to a proposal", "between"),
    ],
    ids=["no token", "wrong token", "no privilege", "of a provider", "no POST", "no room"],
)
def test_a_way_for_proposals_that_is_shut_is_reported(settings, given, message, fix):
    with gms(**settings) as server:
        server_check, write = checked(server=server.url, **given)
    assert server_check.status is Status.OK
    assert (write.name, write.status) == ("DataHub, write", Status.FAILED)
    assert message in write.message
    assert fix in write.fix
    assert server.stored == []
    assert TOKEN not in f"{write.message} {write.fix}"


def test_nothing_listens_where_gms_should():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        [found] = checked(server=url)
    assert f"Nothing listens at {url}/config." in found.message
    assert found.fix.endswith(
        f"transport.server in {PLACE} (DataHub's server, GMS, listens at port 8080)."
    )


def test_headers_and_time_of_the_transport_are_those_of_the_check():
    with gms(token="") as server:
        checked(server=server.url, headers={"X-Tenant": "shop"})
        assert server.requests[0][0]["X-Tenant"] == "shop"
    with gms(Scripted(200, seconds=20)) as slow:
        assert "within 1 seconds" in checked(server=slow.url, timeout=1)[-1].message


@pytest.mark.parametrize(
    ("given", "message", "fix"),
    [
        ({"sever": "http://gms:8080"}, "unknown key 'sever'", "Did you mean server?"),
        ({"server": "http://gms", "env": "LIVE"}, "unknown env 'LIVE'", "PROD"),
        (
            {
                "server": "http://gms",
                "auth": {"type": "tests.unit.hooks.test_backend_checks.Broken"},
            },
            f"transport.auth in {PLACE} gives no token (KeyError)",
            "Check the arguments that this provider of tokens needs.",
        ),
    ],
    ids=["a key", "a value", "a provider of tokens"],
)
def test_a_configuration_that_cannot_be_is_one_check_with_its_error(given, message, fix):
    [found] = checked(**given)
    assert (found.name, found.status) == ("DataHub, transport", Status.FAILED)
    assert message in found.message
    assert fix in found.fix


class Broken(TokenProvider):
    """A provider of tokens whose own configuration has a mistake."""

    def get_bearer(self):
        raise KeyError(TOKEN)


def test_a_folder_is_named_and_nothing_asked(tmp_path):
    [found] = checked(folder=str(tmp_path))
    assert found.status is Status.OK
    assert f"written to {tmp_path}, and not sent" in found.message


def test_pages_are_looked_at_without_the_token():
    with gms() as server, gms(config=HTML) as pages:
        endpoint = Endpoint(
            server.url,
            api_key=TOKEN,
            web_url=pages.url,
            headers=(("X-Secret", "s"),),
            place=UrlPlace("host", "password"),
        )
        found = check(endpoint)
    assert [one.status for one in found] == [Status.OK] * 3
    assert pages.asked == ["/"]
    assert json.loads(server.requests[0][1])["async"] == "false"
