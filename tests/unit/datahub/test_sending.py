"""Proposals sent to a scripted GMS: all stored in the time that there is, or declared."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import time
import tracemalloc
from http.client import HTTPConnection
from types import SimpleNamespace

import msgspec
import pytest

from airflow_provider_sparklineage.datahub import configuration, sending
from airflow_provider_sparklineage.datahub.conversion import proposals as converted
from airflow_provider_sparklineage.datahub.lineage import lineage
from airflow_provider_sparklineage.datahub.proposals import Proposal
from airflow_provider_sparklineage.model.exceptions import DeliveryError
from tests.unit.datahub.airflow_events import FLAKY, event_of
from tests.unit.datahub.events import column_lineage, dataset, source, subject
from tests.unit.datahub.gms import JSON, TOKEN, Scripted, closing, trickling
from tests.unit.datahub.gms import gms as serving_gms
from tests.unit.datahub.patching import patched
from tests.unit.datahub.sdk import require_sdk

HTML = "<html><body>Please log in</body></html>"
LONGEST_S = 20
"""Of what takes a second at most where nothing is wrong, on a machine as busy as it may be."""


@pytest.fixture(autouse=True)
def _sdk():
    require_sdk()


def table(number, env="PROD"):
    return f"urn:li:dataset:(urn:li:dataPlatform:hive,db.t{number},{env})"


def statuses(count):
    return [Proposal(table(i), "status", {"removed": False}) for i in range(count)]


def urns_stored(server):
    return [proposal["entityUrn"] for proposal in server.stored]


def refusing(match):
    return pytest.raises(DeliveryError, match=match)


def send(server, proposals, timeout=LONGEST_S, **given):
    given = {"server": server.url, "token": TOKEN, **given}
    read = configuration.read(given).server
    return sending.send(read, proposals, time.monotonic() + timeout)


def test_all_of_it_is_stored_by_few_requests():
    with serving_gms() as server:
        assert send(server, statuses(450)) == 450

    assert urns_stored(server) == [one.urn for one in statuses(450)]
    assert len(server.requests) == 3
    assert set(server.asked) == {"/aspects?action=ingestProposalBatch"}, "no request but these"


START = {"time": 1_700_000_000_000, "actor": "urn:li:corpuser:datahub"}
RUN = "urn:li:dataProcessInstance:0190a9d8-0000-7000-8000-000000000001"
RUN_KEY = RUN, "dataProcessInstanceProperties"


def ended(**values):
    created = {"time": 1_700_000_009_000, "actor": "urn:li:corpuser:datahub"}
    return Proposal(*RUN_KEY, {"name": "x", "created": created, **values}, keeps="created")


def values_stored(server):
    return [json.loads(one["aspect"]["value"]) for one in server.stored]


def test_the_start_of_a_run_stays_when_it_ends():
    before = {"name": "before", "created": START, "customProperties": {"a": "1"}}
    with serving_gms(aspects={RUN_KEY: before}) as server:
        assert send(server, [ended(customProperties={"b": "2"})]) == 1
    assert values_stored(server) == [
        {"name": "x", "created": START, "customProperties": {"b": "2"}}
    ]
    assert len(server.asked) == 2


def test_a_try_that_airflow_reports_to_end_keeps_the_start_that_its_start_has_stored():
    of_start, of_end = (event_of(FLAKY, state, attempt=2) for state in ("START", "COMPLETE"))
    of_end["run"]["facets"]["airflow"]["taskInstance"]["duration"] = None
    [before] = [one for one in converted(of_start) if one.aspect_name == RUN_KEY[1]]
    with serving_gms(aspects={(before.urn, RUN_KEY[1]): before.aspect}) as server:
        send(server, list(converted(of_end)))
    [after] = [one for one in server.stored if one["aspectName"] == RUN_KEY[1]]
    assert json.loads(after["aspect"]["value"])["created"] == before.aspect["created"]


def test_an_edge_that_a_connector_has_stored_is_a_view_after_the_run_of_a_job_as_well():
    columns = column_lineage(total=[source("orders", "amount", "DIRECT:IDENTITY")])
    revenue = dataset("revenue", columnLineage=columns)
    made = list(lineage(subject(inputs=(dataset("orders"),), outputs=(revenue,))))
    of_tables, _ = [one for one in made if one.aspect_name == "upstreamLineage"]
    key = of_tables.urn, of_tables.aspect_name
    [edge] = patched(None, of_tables)["upstreams"]
    aspect = {"upstreams": [{"dataset": edge["dataset"], "type": "VIEW"}]}
    with serving_gms(aspects={key: aspect}) as server:
        send(server, made)
    for sent, value in zip(server.stored, values_stored(server), strict=True):
        if sent["aspectName"] == "upstreamLineage":
            aspect = patched(aspect, Proposal(*key, value))
    assert [one["type"] for one in aspect["upstreams"]] == ["VIEW"]


def test_where_no_start_is_stored_the_end_is_the_time_of_the_run():
    with serving_gms() as server:
        send(server, [ended()])
    assert values_stored(server) == [ended().aspect]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda h: h._error(401, "no reading"), id="may not read"),
        pytest.param(lambda h: h._error(500, "broken"), id="broken"),
        pytest.param(lambda h: h.answer(200, "<html>", Content_Type="text/html"), id="a page"),
        pytest.param(lambda h: h.answer(200, "{", Content_Type=JSON), id="torn"),
        pytest.param(lambda h: h.answer(200, '{"aspect": []}', Content_Type=JSON), id="odd"),
        pytest.param(lambda h: h.answer(302, Location="http://elsewhere/"), id="redirect"),
        pytest.param(closing, id="closed"),
        pytest.param(trickling, id="slow"),
    ],
)
def test_a_server_that_gives_no_aspect_is_asked_once_and_stores_all(answer):
    others = [Proposal(table(n), "status", {"removed": False}, keeps="x") for n in range(5)]
    with serving_gms(aspects={RUN_KEY: answer}) as server:
        assert send(server, [ended(), *others], timeout=3) == 6
    assert values_stored(server)[0] == ended().aspect
    assert len(server.asked) == 2


def test_reading_leaves_most_of_the_time_for_sending():
    def slow(handler):
        time.sleep(0.3)
        handler._error(404, "none")

    others = [Proposal(table(n), "status", {"removed": False}, keeps="x") for n in range(50)]
    aspects = {(one.urn, "status"): slow for one in others}
    begun = time.monotonic()
    with serving_gms(aspects=aspects) as server:
        assert send(server, others, timeout=4) == 50
    assert time.monotonic() - begun < 3.5
    assert len(server.asked) <= 6


def test_requests_are_those_of_datahubs_own_emitter():
    """Byte by byte of the aspects; what says which client sent it is the client's."""
    from datahub.emitter.rest_emitter import DatahubRestEmitter, EmitMode
    from datahub.metadata.schema_classes import GenericAspectClass, MetadataChangeProposalClass

    given = [
        *statuses(2),
        Proposal(table("ü"), "datasetProperties", {"name": "ü␟", "customProperties": {}}),
        Proposal(table(8), "status", {"removed": False}, only_if_absent=True),
        Proposal(table(7), "globalTags", [{"op": "add", "path": "/tags/a", "value": {}}], True),
    ]
    theirs = [
        MetadataChangeProposalClass(
            entityType=one.entity_type,
            entityUrn=one.urn,
            changeType=one.change_type,
            aspectName=one.aspect_name,
            aspect=GenericAspectClass(one.text().encode(), one.content_type),
            headers=one.headers or None,
        )
        for one in given
    ]
    with serving_gms() as server:
        send(server, given)
        emitter = DatahubRestEmitter(server.url, TOKEN, openapi_ingestion=False)
        emitter.emit_mcps(theirs, emit_mode=EmitMode.ASYNC)
        emitter.close()

    (our_headers, ours), (headers, body) = server.requests
    assert _neutral(json.loads(ours)) == _neutral(json.loads(body))
    for name in ("Authorization", "Content-Type", "X-RestLi-Protocol-Version"):
        assert our_headers[name] == headers[name]


def _neutral(document):
    for proposal in document["proposals"]:
        assert set(proposal.pop("systemMetadata")) >= {"lastObserved", "properties"}
    return document


@pytest.mark.parametrize(("given", "mode"), [({}, "true"), ({"async": False}, "false")])
def test_the_server_is_asked_to_store_now_or_later(given, mode):
    with serving_gms() as server:
        send(server, statuses(1), **given)

    assert server.modes == [mode]


@pytest.mark.parametrize(
    "answer",
    [
        Scripted(429),
        Scripted(429, headers=(("Retry-After", "0"),)),
        Scripted(500),
        Scripted(502, HTML, (("Content-Type", "text/html"),)),
        Scripted(503, ""),
        Scripted(504),
        closing,
    ],
    ids=["429", "429 now", "500", "502 of a proxy", "503", "504", "closed"],
)
def test_what_passes_is_tried_again(answer):
    with serving_gms(answer) as server:
        assert send(server, statuses(3)) == 3

    assert len(server.requests) == 2
    assert len(server.stored) == 3


@pytest.fixture
def pauses(monkeypatch):
    """Note how long is waited between requests, which takes no time here."""
    noted = []
    monkeypatch.setattr(sending, "time", SimpleNamespace(**vars(time) | {"sleep": noted.append}))
    return noted


def test_a_server_that_wants_a_pause_gets_it(pauses):
    with serving_gms(Scripted(429, headers=(("Retry-After", "1"),))) as server:
        send(server, statuses(1))

    assert len(pauses) == 1
    assert 1 <= pauses[0] < 2


def test_a_server_that_wants_a_longer_pause_than_there_is_is_not_waited_for(pauses):
    busy = Scripted(429, headers=(("Retry-After", "60"),))
    expected = pytest.raises(DeliveryError, match=r"stored nothing .* because 429 scripted")
    with serving_gms(busy) as server, expected:
        send(server, statuses(1))

    assert pauses == []


def test_a_date_to_be_tried_again_at_is_understood():
    later = sending._seconds_to_wait("Wed, 21 Oct 2099 07:28:00 GMT")

    assert later > 1e9
    assert (
        sending._seconds_to_wait("soon")
        == sending._seconds_to_wait("Wed, 21 Oct 2015 07:28:00 GMT")
        == 0
    )


@pytest.mark.parametrize(
    "always",
    [Scripted(503), closing, trickling, Scripted(200, "{}", seconds=LONGEST_S), Scripted(500)],
    ids=["503", "closed", "trickling", "slow", "500"],
)
def test_the_time_that_there_is_is_kept(always):
    with serving_gms(always=always) as server:
        begun = time.monotonic()
        with pytest.raises(DeliveryError, match="stored nothing") as raised:
            send(server, statuses(64), timeout=1)
        took = time.monotonic() - begun

    assert took < LONGEST_S / 2
    assert not raised.value.is_refusal


def test_what_was_stored_before_is_named():
    with serving_gms() as server:
        server.script = iter([None, Scripted(401)])
        with pytest.raises(DeliveryError, match=r"stored 200 aspects .* because 401 scripted"):
            send(server, statuses(300))

    assert len(server.stored) == 200


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Scripted(401), "401 scripted"),
        (Scripted(403), "403 scripted"),
        (Scripted(404), "404 scripted"),
        (Scripted(200, HTML, (("Content-Type", "text/html"),)), "is not GMS"),
        (Scripted(200, "{", (("Content-Type", JSON),)), "is not GMS"),
        (Scripted(200, '{"status": 401, "message": "no"}'), "401 no"),
        (Scripted(999), "999 scripted"),
        (
            Scripted(302, headers=(("Location", "http://elsewhere/login?ticket=hunter2"),)),
            r"sends on to http://elsewhere \(30",
        ),
        (
            Scripted(307, headers=(("Location", "http://elsewhere/"),)),
            r"sends on to http://elsewhere \(30",
        ),
    ],
)
def test_what_no_other_try_would_change_is_tried_once(answer, reason):
    with serving_gms(answer) as server, pytest.raises(DeliveryError, match=reason) as raised:
        send(server, statuses(2))

    assert len(server.requests) == 1
    assert not raised.value.is_refusal


def test_one_that_is_refused_costs_the_others_nothing():
    wrong = Proposal(table("x"), "status", {"removed": "perhaps"})
    with serving_gms() as server, refusing(r"1 were refused: status of .*db.tx,PROD") as raised:
        send(server, [*statuses(20), wrong, *statuses(9)])

    assert len(server.stored) == 29
    assert raised.value.is_refusal, "the next event may fare better"


def test_one_that_the_server_fails_at_costs_the_others_nothing():
    def failing(handler):
        body = handler.server.requests[-1][1]
        if b"db.t5," in body:
            handler._error(500, "java.lang.NullPointerException")
        else:
            handler._ingest(body)

    with serving_gms(always=failing) as server, refusing(r"1 were refused: status of .*db.t5"):
        send(server, statuses(8))

    assert len(server.stored) == 7


def test_entities_that_are_not_allowed_cost_one_more_request():
    with serving_gms(forbids={table(3), table(4)}) as server, refusing("2 were refused"):
        send(server, statuses(150))

    assert len(server.stored) == 148
    assert len(server.requests) == 2


def test_an_entity_whose_name_has_blanks_can_be_one_that_is_not_allowed():
    barred = table("1 of 2")
    with serving_gms(forbids={barred, table(4)}) as server, refusing("2 were refused"):
        send(server, [*statuses(5), Proposal(barred, "status", {"removed": False})])

    assert len(server.stored) == 4
    assert len(server.requests) == 2


def test_what_is_only_for_its_absence_may_be_refused():
    """By a GMS that takes no notice of the header, and has the aspect."""

    def creating(handler):
        if b'"CREATE"' in handler.server.requests[-1][1]:
            handler._error(400, "Cannot perform CREATE if not exists since the aspect exists")
        else:
            handler._ingest(handler.server.requests[-1][1])

    known = Proposal(table(9), "status", {"removed": False}, only_if_absent=True)
    with serving_gms(always=creating) as server:
        assert send(server, [*statuses(3), known]) == 3


def test_a_batch_that_is_too_large_for_a_proxy_is_halved():
    with serving_gms(max_bytes=9000) as server:
        assert send(server, statuses(100)) == 100

    assert urns_stored(server) == [one.urn for one in statuses(100)]


def test_large_proposals_go_alone():
    large = [Proposal(table(i), "status", {"removed": "x" * 3_000_000}) for i in range(3)]

    assert [len(batch) for batch in sending.batches(large)] == [1, 1, 1]
    assert list(sending.batches([])) == []


def test_proposals_are_made_as_they_are_sent():
    made = []

    def counted():
        for one in statuses(600):
            made.append(one)
            yield one

    with serving_gms(Scripted(401)) as server, pytest.raises(DeliveryError):
        send(server, counted())

    assert len(made) == 201


def test_nothing_listens():
    with serving_gms() as server:
        pass

    with pytest.raises(DeliveryError, match="is where nothing listens"):
        send(server, statuses(1), timeout=0.5)


def test_no_token_is_in_a_message_or_a_log(caplog, capfd, monkeypatch):
    monkeypatch.setattr(HTTPConnection, "debuglevel", 1)
    caplog.set_level(logging.DEBUG)

    def repeating(handler):
        handler._error(401, f"no such token: {handler.headers['Authorization']}")

    with serving_gms(always=repeating) as server, pytest.raises(DeliveryError) as raised:
        send(server, statuses(1))

    assert TOKEN in server.requests[0][0]["Authorization"]
    assert TOKEN not in str(raised.value)
    assert TOKEN not in caplog.text
    assert TOKEN not in "".join(capfd.readouterr())


BASIC = base64.b64encode(b"me:pass word!").decode()


@pytest.mark.parametrize(
    ("headers", "secret"),
    [
        pytest.param({"X-Api-Key": "hunter2hunter2"}, "hunter2hunter2", id="a key"),
        pytest.param({"Authorization": f"Basic {BASIC}"}, BASIC, id="basic"),
        pytest.param({"Authorization": f"Basic {BASIC}"}, "pass word!", id="its password"),
        pytest.param({"Cookie": "a=1; session=ab/12cd"}, "ab/12cd", id="a cookie"),
        pytest.param({"Cookie": "a=1; session=ab/12cd"}, "ab%2F12cd", id="as URLs have it"),
    ],
)
def test_no_header_that_the_server_repeats_is_in_a_message(headers, secret, caplog, capfd):
    caplog.set_level(logging.DEBUG)

    def repeating(handler):
        handler._error(401, f"no access: {secret}, {dict(handler.headers)}")

    with serving_gms(always=repeating) as server, pytest.raises(DeliveryError) as raised:
        send(server, statuses(1), token=None, headers=headers)

    assert "401 no access: ***" in str(raised.value)
    texts = [str(raised.value), caplog.text, *capfd.readouterr()]
    assert not any(form in text for text in texts for form in (secret, *headers.values()))


def packed(text, times=1):
    content = text.encode() if isinstance(text, str) else text
    for _ in range(times):
        content = gzip.compress(content)
    return content


def answering(content, status=200, **headers):
    """Give an answer of bytes."""

    def answer(handler):
        handler.send_response(status)
        given = {"Content-Type": JSON, "Content-Length": str(len(content)), **headers}
        for name, value in given.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)

    return answer


@pytest.mark.parametrize("times", [1, 2])
def test_an_answer_is_unpacked_within_bounds(times):
    bomb = packed(b" " * 300_000_000, times)
    encoding = ", ".join(["gzip"] * times)
    answer = answering(bomb, **{"Content-Encoding": encoding})
    tracemalloc.start()
    with serving_gms(always=answer) as server, refusing("is not GMS"):
        send(server, statuses(1))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20_000_000
    assert server.requests[0][0]["Accept-Encoding"] == "identity"


def test_an_answer_that_a_proxy_has_compressed_is_read():
    stored = answering(packed('{"value": "success"}'), **{"Content-Encoding": "gzip"})
    with serving_gms(always=stored) as server:
        assert send(server, statuses(2)) == 2
    refused = answering(packed('{"message": "no"}'), 401, **{"Content-Encoding": "gzip"})
    with serving_gms(always=refused) as server, refusing("401 no"):
        send(server, statuses(2))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(answering(b"x" * 100, **{"Content-Encoding": "gzip"}), id="not gzip"),
        pytest.param(
            answering(packed("{}" * 999)[:20], **{"Content-Encoding": "gzip"}), id="torn gzip"
        ),
        pytest.param(answering(b"\xff\xfe{", 200), id="no UTF-8"),
        pytest.param(answering(b"[" * 60_000), id="nested deep"),
    ],
)
def test_an_answer_that_cannot_be_read_is_not_that_of_gms(answer):
    with serving_gms(always=answer) as server, refusing("is not GMS"):
        send(server, statuses(1))


def test_a_host_or_proxy_that_cannot_be_is_not_taken_for_a_header(monkeypatch):
    server = SimpleNamespace(url=f"http://{'a' * 70}.invalid")
    with refusing("has a host without an IP address"):
        send(server, statuses(1), timeout=1)
    monkeypatch.setenv("HTTP_PROXY", "socks5://me:hunter2@127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "socks5://me:hunter2@127.0.0.1:1")
    with refusing("Missing dependencies for SOCKS support|is behind a proxy") as raised:
        send(SimpleNamespace(url="http://gms.invalid"), statuses(1), timeout=1)
    assert "hunter2" not in str(raised.value)


def test_a_token_that_is_no_header_is_not_in_the_message():
    found = configuration.read({"server": "http://127.0.0.1:1"}).server
    bad = msgspec.structs.replace(found, bearer=lambda: "Bearer hunter2\nX: 1")
    with pytest.raises(DeliveryError) as raised:
        sending.send(bad, statuses(1), time.monotonic() + LONGEST_S)
    assert "cannot be sent as a header" in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_what_netrc_has_for_the_host_is_not_sent(tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with serving_gms(token=None) as server:
        send(server, statuses(1), token=None)

    assert "Authorization" not in server.requests[0][0]


def test_headers_that_are_asked_for_are_sent():
    with serving_gms() as server:
        send(server, statuses(1), headers={"X-Tenant": "a"})

    assert server.requests[0][0]["X-Tenant"] == "a"
