"""Datasets and columns with texts for people, in what is sent and in nothing that is kept."""

from __future__ import annotations

import copy

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.event.descriptions import Descriptions
from airflow_provider_sparklineage.event.pipeline import Others, adapted, ready_to_send
from airflow_provider_sparklineage.model.representation import Adaptation
from tests.openlineage_spec import validate_event
from tests.unit.event.test_descriptions import DAY, WHOLE, entry, event, source

MARQUEZ = Adaptation(backend="marquez")
BY = "by flights.daily_delays, 2026-11-23 03:14 UTC"


def texts(sent, side="outputs"):
    """Give the texts of each dataset: its own, and of its columns."""
    found = {}
    for dataset in sent[side]:
        facets = dataset["facets"]
        fields = facets.get("schema", {}).get("fields", ())
        found[dataset["name"].removeprefix("/lake/")] = (
            facets.get("documentation", {}).get("description"),
            {field["name"]: field.get("description") for field in fields},
        )
    return found


def daily(**more):
    columns = {"n": [source("flights", "n")], "of_spark": [source("flights", "n")]}
    return event(columns, writes=[entry("daily_delays", DAY)], **more)


def bare(name="daily_delays", fields=(), **facets):
    if fields:
        facets["schema"] = {"fields": [{"name": f, "type": "int"} for f in fields]}
    return {"namespace": "file", "name": f"/lake/{name}", "facets": facets}


def start(*outputs):
    """Make START: no header, and nothing that anybody has seen."""
    return {
        "run": {"facets": {}},
        "job": {"facets": {}},
        "inputs": [bare("flights")],
        "outputs": list(outputs),
    }


def test_what_a_run_accessed_is_described_when_it_leaves():
    sent = ready_to_send(WHOLE, MARQUEZ)
    assert texts(sent)["staging"] == (f"Written {BY}", {})
    assert texts(sent, "inputs")["flights"] == (f"{DAY} read {BY}", {})
    assert texts(sent)["daily_delays"][1] == {
        "visib": "= avg(visib), from weather.visib",
        "n": "from flights.n",
    }


def test_a_run_that_has_ended_describes_its_job():
    """As when it is sent again, without Airflow, which would put the user's text there."""
    facets = ready_to_send(WHOLE, MARQUEZ)["job"]["facets"]
    assert facets["documentation"]["description"] == Descriptions(WHOLE).of_run()
    assert ready_to_send(start(bare()), MARQUEZ, Others(WHOLE))["job"]["facets"] == {}


def test_it_is_valid(recorded):
    validate_event(ready_to_send(recorded("staging_chain").event, MARQUEZ))


@pytest.mark.parametrize(
    "how",
    [Adaptation(), Adaptation(backend="marquez", describe_datasets=False)],
    ids=["another backend", "switched off"],
)
def test_others_get_the_event_as_it_is_kept(how):
    assert ready_to_send(WHOLE, how) is WHOLE


def test_what_is_kept_stays_as_it_is():
    before = copy.deepcopy(WHOLE)
    ready_to_send(WHOLE, MARQUEZ)
    assert before == WHOLE


def test_a_table_keeps_its_own_texts():
    made = daily()
    facets = made["outputs"][0]["facets"]
    facets["documentation"] = {"description": "Delays by day."}
    facets["schema"]["fields"][1]["description"] = "a comment in Spark"
    assert texts(ready_to_send(made, MARQUEZ)) == {
        "daily_delays": (
            "Delays by day.",
            {"n": "from flights.n", "of_spark": "a comment in Spark"},
        )
    }


IN_AIRFLOW = Adaptation(backend="marquez", airflow_url="https://airflow/team/", has_history=True)
PAGE = "https://airflow/team/plugin/spark-lineage-history?namespace=file&name=/lake"


def one_day():
    counted = {"count": 1, "first": DAY, "last": DAY}
    return {"observed": counted}


def last_lines(sent, side="outputs"):
    """Give the last line of each dataset's text, if there is more than one."""
    every = {name: (text or "").splitlines() for name, (text, _) in texts(sent, side).items()}
    return {name: lines[-1] if len(lines) > 1 else None for name, lines in every.items()}


def test_a_text_ends_with_the_dataset_in_airflow_or_its_only_partition():
    two_days = {"observed": {"count": 2, "first": DAY, "last": "flight_date=2013-01-09"}}
    made = event(
        reads=[entry("flights", DAY, **two_days), entry("ports")],
        writes=[entry("daily_delays", DAY, **one_day())],
    )
    sent = ready_to_send(made, IN_AIRFLOW)
    assert texts(sent)["daily_delays"][0] == (
        f"{DAY} written {BY}\n\n— Lineage: {PAGE}/daily_delays&partition={DAY}"
    )
    assert last_lines(sent, "inputs") == {
        "flights": f"— Lineage: {PAGE}/flights",
        "ports": f"— Lineage: {PAGE}/ports",
    }


@pytest.mark.parametrize(
    "how",
    [replace(IN_AIRFLOW, airflow_url=""), replace(IN_AIRFLOW, has_history=False)],
    ids=["nobody says where Airflow is", "there is no page"],
)
def test_without_a_page_in_airflow_no_text_leads_there(how):
    assert ready_to_send(daily(), how) == ready_to_send(daily(), MARQUEZ)


def test_a_table_keeps_its_own_text_and_the_page_comes_after_it():
    made = daily()
    made["outputs"][0]["facets"]["documentation"] = {"description": "Delays by day."}
    [(text, _)] = texts(ready_to_send(made, IN_AIRFLOW)).values()
    assert text == f"Delays by day.\n\n— Lineage: {PAGE}/daily_delays"


def test_start_leads_to_the_partition_of_the_last_write():
    last = event(writes=[entry("daily_delays", DAY, **one_day())])
    sent = ready_to_send(start(bare()), IN_AIRFLOW, Others(last))
    assert last_lines(sent) == {"daily_delays": f"— Lineage: {PAGE}/daily_delays&partition={DAY}"}


def test_where_names_were_changed_for_marquez_no_text_leads_to_airflow():
    """Airflow's page knows a dataset by the name that the task's event has."""
    name = {"namespace": "kafka://a:1,b:2", "name": "orders"}
    made = event(writes=[{**entry("orders"), "dataset": name}])
    made["outputs"] = [{**name, "facets": {}}]
    made["run"]["facets"]["sparkLineage_capture"]["degradations"] = []
    sent = ready_to_send(adapted(made, IN_AIRFLOW), IN_AIRFLOW)
    assert sent["outputs"][0]["namespace"] == "kafka://a:1_b:2"
    assert texts(sent)["orders"][0] == f"Written {BY}"


def test_a_reader_leads_to_what_it_read_and_before_that_to_what_was_written():
    wrote = event(writes=[entry("flights", DAY, **one_day())])
    begun = ready_to_send(start(bare()), IN_AIRFLOW, Others(upstream=[wrote]))
    assert last_lines(begun, "inputs") == {"flights": f"— Lineage: {PAGE}/flights&partition={DAY}"}
    ended = ready_to_send(reader(entry("flights")), IN_AIRFLOW, Others(upstream=[wrote]))
    assert last_lines(ended, "inputs") == {"flights": f"— Lineage: {PAGE}/flights"}


def test_start_has_the_texts_of_the_last_write():
    last = daily()
    sent = ready_to_send(start(bare(fields=["n", "of_spark"])), MARQUEZ, Others(last))
    assert texts(sent) == texts(ready_to_send(last, MARQUEZ))


def test_start_has_none_where_no_run_is_known():
    first = start(bare(fields=["n"]))
    assert ready_to_send(first, MARQUEZ) is first


def test_a_failed_write_leaves_the_text_of_the_last_one():
    """Marquez would show none: it takes away what an event does not repeat."""
    failed = event(writes=[entry("daily_delays", failed=True)], eventType="FAIL")
    failed["outputs"] = [bare()]
    sent = ready_to_send(failed, MARQUEZ, Others(daily()))
    assert texts(sent) == {"daily_delays": (f"{DAY} written {BY}", {})}


def test_what_a_failed_run_did_write_is_of_that_run():
    sent = ready_to_send(
        daily(eventType="FAIL"), MARQUEZ, Others(daily(eventTime="2026-11-22T00:00:00Z"))
    )
    assert texts(sent)["daily_delays"][0] == f"{DAY} written {BY} (the run failed)"


def test_columns_are_described_alike_by_start_and_end():
    """Of two schemas in one run Marquez makes two versions, and either may become the current."""
    yesterday = daily(eventTime="2026-11-22T03:14:00Z")
    of_start = ready_to_send(start(bare(fields=["n", "of_spark"])), MARQUEZ, Others(yesterday))
    of_end = ready_to_send(daily(), MARQUEZ, Others(yesterday))
    [begun], [ended] = of_start["outputs"], of_end["outputs"]
    assert begun["facets"]["schema"] == ended["facets"]["schema"]


def test_a_dataset_that_is_read_and_written_has_a_text_of_each():
    both = event(reads=[entry("daily_delays", DAY)], writes=[entry("daily_delays", DAY)])
    sent = ready_to_send(both, MARQUEZ)
    assert texts(sent, "inputs")["daily_delays"][0] == f"{DAY} read {BY}"
    assert texts(sent)["daily_delays"][0] == f"{DAY} written {BY}"


def reader(*reads):
    return event(reads=list(reads), job={"name": "flights.report", "facets": {}})


def test_what_a_task_before_this_one_wrote_keeps_its_texts():
    """Marquez would take the writer's away: it shows the text of the last event that names it."""
    read = reader(entry("daily_delays", DAY), entry("ports"))
    read["inputs"][0] = bare(fields=["n", "of_spark"])
    sent = ready_to_send(read, MARQUEZ, Others(upstream=[daily()]))
    written_text, written_columns = texts(ready_to_send(daily(), MARQUEZ))["daily_delays"]
    by = "by flights.report, 2026-11-23 03:14 UTC"
    assert texts(sent, "inputs") == {
        "daily_delays": (f"{DAY} read {by}. {written_text}", written_columns),
        "ports": (f"Read {by}", {}),
    }


def test_start_has_them_already():
    before = start(bare("report"))
    before["inputs"] = [bare(fields=["n", "of_spark"])]
    sent = ready_to_send(before, MARQUEZ, Others(upstream=[daily()]))
    assert texts(sent, "inputs") == texts(ready_to_send(daily(), MARQUEZ))


def test_of_two_writers_the_nearest_counts():
    nearest, other = daily(), daily(job={"name": "flights.other", "facets": {}})
    sent = ready_to_send(reader(entry("daily_delays")), MARQUEZ, Others(upstream=[nearest, other]))
    assert texts(sent, "inputs")["daily_delays"][0].endswith(f"{DAY} written {BY}")
