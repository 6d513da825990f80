"""Partitions that are missing are found, in tables of hours and regions too, and no others."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("duckdb", reason="the extra history has it")

from airflow_provider_sparklineage.history.queries.gaps import completeness, gaps
from airflow_provider_sparklineage.model.datasets import DatasetName
from tests.unit.history.queries.answers import START, Answers

REVENUE = DatasetName("ns", "revenue")
NULL = "__HIVE_DEFAULT_PARTITION__"
DATES = ("logical_date", "data_interval_start", "data_interval_end")
NOTHING = dict.fromkeys(("dag_id", "task_id", "dag_run_id", *DATES))
"""The fields of a run of another scheduler."""


def day(number: int) -> str:
    return f"dt={date(2024, 1, 1) + timedelta(number)}"


@pytest.fixture
def answers():
    return Answers()


def folder(values):
    return "/".join(f"{label}={value}" for label, value in values.items())


def missing(answers):
    return [folder(gap.partition) for gap in gaps(answers, REVENUE)]


def because(answers):
    """Give the missing partitions with the map index, the reason and the run."""
    return [
        (folder(gap.partition), gap.map_index, gap.reason, gap.run and gap.run.run_id)
        for gap in gaps(answers, REVENUE)
    ]


def unjudged(answers):
    return [(one.reason, one.count, one.job) for one in completeness(answers, REVENUE).unjudged]


# --- hours ----------------------------------------------------------------------------------------


def at_hour(number: int, label: str = "hour") -> str:
    return f"{day(number // 24)}/{label}={number % 24:02}"


def hourly(answers, hours, failed=(), label="hour", **fields):
    """Add a run for each of some hours."""
    for n in hours:
        start = START.replace(hour=0) + timedelta(hours=n)
        dates = {"logical_date": start, "data_interval_start": start}
        dates |= {"data_interval_end": start + timedelta(hours=1)}
        dates |= {"started": start + timedelta(hours=1), "ended": start + timedelta(hours=1)}
        state = "FAIL" if n in failed else "COMPLETE"
        cells = [] if n in failed else [at_hour(n, label)]
        answers.run(n, [], cells, state=state, **dates | fields)


@pytest.mark.parametrize("label", ["hour", "hr", "h", "HH", "event_hour"])
def test_an_hour_without_a_run_and_one_of_a_failed_run_are_missing(answers, label):
    """Both are named as the folders of the table are, with leading zeros."""
    hourly(answers, [n for n in range(120) if n != 47], failed={51}, label=label)
    assert because(answers) == [
        (at_hour(47, label), -1, "no_run", None),
        (at_hour(51, label), -1, "failed", "build-51"),
    ]


def test_the_cell_of_an_hour_is_canonical(answers):
    """Plans and the page look it up."""
    hourly(answers, [n for n in range(120) if n != 51])
    assert [gap.cell for gap in gaps(answers, REVENUE)] == [f"{day(2)}/hour=3"]


def test_a_day_and_an_hour_of_a_task_that_writes_24_hours_are_missing(answers):
    """The day's run did not write the hour."""
    for n in range(30):
        if n != 7:
            answers.run(n, [], [at_hour(n * 24 + k) for k in range(24) if (n, k) != (5, 3)])
    assert missing(answers) == [
        at_hour(5 * 24 + 3),
        *(at_hour(7 * 24 + k) for k in range(24)),
    ]


def test_a_task_that_writes_two_hours_of_each_day_lacks_no_others(answers):
    """Hours 0 and 12 are due."""
    for n in range(30):
        answers.run(n, [], [f"{day(n)}/hour={k:02}" for k in (0, 12) if (n, k) != (5, 12)])
    assert missing(answers) == [f"{day(5)}/hour=12"]


def test_hours_of_another_scheduler_are_expected_at_their_own_step(answers):
    """Their runs have no dates."""
    hourly(answers, [n for n in range(120) if n != 47], **NOTHING)
    assert missing(answers) == [at_hour(47)]


def test_hours_of_regions_are_missing(answers):
    """A run writes both regions."""
    for n in range(96):
        start = START.replace(hour=0) + timedelta(hours=n)
        cells = [f"{at_hour(n)}/region={region}" for region in ("eu", "us")]
        answers.run(n, [], cells[n in {30, 31} :], **dict.fromkeys(DATES, start))
    assert missing(answers) == [f"{at_hour(n)}/region=eu" for n in (30, 31)]


def test_a_month_and_its_day_are_one_date(answers):
    """Also over the end of February."""
    for n in range(90):
        if n not in {31 + 28, 70}:
            answers.run(n, [], [f"{date(2024, 1, 1) + timedelta(n):month=%Y-%m/day=%d}"])
    assert missing(answers) == ["month=2024-02/day=29", "month=2024-03/day=11"]


# --- map indexes ----------------------------------------------------------------------------------

REGIONS = ("eu", "us", "pl")


def mapped(answers, days, without=(), failed=(), regions=REGIONS):
    """Add a run for each region of each day."""
    for n in days:
        for index, region in enumerate(regions):
            known = {"map_index": index, "run_id": f"build-{n}[{index}]"}
            if (n, region) in failed:
                answers.run(n, [], [], state="FAIL", **known)
            elif (n, region) not in without:
                answers.run(n, [], [f"{day(n)}/region={region}"], **known)


def test_the_region_of_a_map_index_that_failed_or_never_ran_is_missing(answers):
    """The gap names the map index that writes this region on other days."""
    mapped(answers, range(20), without={(5, "us")}, failed={(7, "pl"), (9, "eu")})
    assert because(answers) == [
        (f"{day(5)}/region=us", 1, "no_run", None),
        (f"{day(7)}/region=pl", 2, "failed", "build-7[2]"),
        (f"{day(9)}/region=eu", 0, "failed", "build-9[0]"),
    ]
    assert {gap.dag_run_id for gap in gaps(answers, REVENUE)} == {
        f"scheduled-{n}" for n in (7, 9)
    } | {"scheduled-5"}


def test_a_map_index_that_succeeded_in_its_second_try_leaves_no_gap(answers):
    """The first try failed."""
    mapped(answers, range(20), failed={(7, "pl")})
    last = {"map_index": 2, "run_id": "again", "try_number": 2}
    answers.run(7, [], [f"{day(7)}/region=pl"], **last)
    assert missing(answers) == []


def test_the_run_of_a_gap_is_the_last_try_of_its_map_index(answers):
    """Other indexes ran later."""
    mapped(answers, range(20), failed={(7, "eu")})
    answers.run(7, [], [], state="FAIL", map_index=0, run_id="again", try_number=2)
    later = {"map_index": 1, "run_id": "later", "try_number": 3}
    answers.run(7, [], [f"{day(7)}/region=us"], **later)
    assert because(answers) == [(f"{day(7)}/region=eu", 0, "failed", "again")]


def test_a_day_without_any_run_of_a_mapped_task_lacks_all_regions(answers):
    """The map indexes are those of the other days."""
    mapped(answers, [n for n in range(20) if n != 8])
    assert because(answers) == [
        (f"{day(8)}/region={region}", index, "no_run", None)
        for region, index in (("eu", 0), ("pl", 2), ("us", 1))
    ]


def test_the_map_index_is_that_of_the_latest_run_if_their_order_changed(answers):
    """It is a guess."""
    mapped(answers, range(10))
    mapped(answers, range(10, 20), without={(15, "eu")}, regions=REGIONS[::-1])
    assert because(answers) == [(f"{day(15)}/region=eu", 2, "no_run", None)]


def test_the_map_index_is_not_known_if_several_wrote_the_same_values(answers):
    """Each index writes a day of its own, and no region tells them apart."""
    for n in range(0, 40, 2):
        for index in (0, 1):
            known = {"map_index": index, "run_id": f"build-{n}[{index}]"}
            is_lost = (n, index) == (10, 1)
            state = "FAIL" if is_lost else "COMPLETE"
            answers.run(n, [], [] if is_lost else [day(n + index)], state=state, **known)
    assert because(answers) == [(day(11), -1, "failed", "build-10[1]")]


def test_a_task_that_is_no_longer_mapped_has_no_map_index(answers):
    """Its run writes all regions."""
    mapped(answers, range(5))
    for n in range(5, 30):
        cells = [f"{day(n)}/region={region}" for region in REGIONS]
        state = "FAIL" if n == 20 else "COMPLETE"
        answers.run(n, [], [] if n == 20 else cells, state=state, map_index=-1)
    assert because(answers) == [
        (f"{day(20)}/region={region}", -1, "failed", "build-20") for region in sorted(REGIONS)
    ]


@settings(deadline=None, max_examples=25)
@given(
    lost=st.sets(
        st.tuples(st.integers(0, 29), st.sampled_from(REGIONS)).filter(lambda one: one[0] % 3),
        max_size=12,
    )
)
def test_the_lost_regions_of_a_full_schedule_are_found_exactly(lost):
    """Any of them may have failed; each day in three has all."""
    answers = Answers()
    mapped(answers, range(30), failed=lost)
    assert sorted(missing(answers)) == sorted(f"{day(n)}/region={region}" for n, region in lost)


# --- dates and a second dimension -----------------------------------------------------------------


def test_a_day_without_a_run_lacks_all_constant_values(answers):
    """A rule that says nothing of a date does not count as one of dates."""
    for n in range(20):
        if n != 8:
            answers.run(n, [], [f"{day(n)}/region={region}" for region in ("eu", "us")])
    assert missing(answers) == [f"{day(8)}/region={region}" for region in ("eu", "us")]


def test_a_combination_of_constants_that_no_run_ever_wrote_is_not_expected(answers):
    """Kind b has no region us."""
    pairs = ("kind=a/region=eu", "kind=a/region=us", "kind=b/region=eu")
    for n in range(20):
        answers.run(n, [], [f"{day(n)}/{pair}" for pair in pairs if (n, pair) != (5, pairs[1])])
    assert missing(answers) == [f"{day(5)}/{pairs[1]}"]


def grown(n):
    """Give the regions of a day: one was closed on day 10, others were opened on days 20 and 40."""
    return ["eu", *["us"] * (n < 10), *["pl"] * (n >= 20), *["cz"] * (n >= 40)]


def test_a_region_is_expected_from_its_first_day_on_unless_it_was_closed(answers):
    """No constant set of regions holds for most days."""
    lost = {(3, "eu"), (30, "pl"), (50, "cz"), (51, "eu")}
    for n in range(60):
        regions = [one for one in grown(n) if (n, one) not in lost]
        answers.run(n, [], [f"{day(n)}/region={region}" for region in regions])
    assert missing(answers) == [f"{day(n)}/region={region}" for n, region in sorted(lost)]
    assert unjudged(answers) == [("rare", 1, "dag.build")]


def test_a_region_that_was_opened_later_is_not_expected_before(answers):
    """The set of both regions holds for most days, and counts as constant."""
    for n in range(60):
        if n != 41:
            regions = ("eu", "us")[: 1 + (n >= 20)]
            answers.run(n, [], [f"{day(n)}/region={region}" for region in regions])
    assert missing(answers) == [f"{day(41)}/region={region}" for region in ("eu", "us")]


def test_airports_without_flights_on_many_days_are_no_gaps(answers):
    """A day without any airport is one."""
    for n in range(60):
        airports = [k for k in range(12) if (n * 7 + k * k) % 5 < 3]
        if n != 30:
            answers.run(n, [], [f"{day(n)}/airport={k}" for k in airports])
    assert missing(answers) == [day(30)]
    assert [reason for reason, _, _ in unjudged(answers)] == ["rare"]


def test_an_outage_of_weeks_does_not_make_regions_rare(answers):
    """Days on which nothing was written say nothing about a region."""
    for n in (*range(20), *range(40, 60)):
        regions = ["eu", *["us"] * (n >= 5), f"lab{n % 7}"]
        answers.run(n, [], [f"{day(n)}/region={region}" for region in regions])
    assert missing(answers) == [
        f"{day(n)}/region={region}" for n in range(20, 40) for region in ("eu", "us")
    ]


def test_a_null_region_is_a_region(answers):
    """Rows without a region are written each day."""
    for n in range(20):
        regions = ["eu", *[NULL] * (n != 5)]
        answers.run(n, [], [f"{day(n)}/region={region}" for region in regions])
    assert missing(answers) == [f"{day(5)}/region={NULL}"]


def test_values_of_other_schedulers_are_expected_by_the_same_rule(answers):
    """A sparse value is not, and a day without any run lacks all frequent ones."""
    for n in range(40):
        regions = ["eu", *["us"] * (n >= 10 and n != 15), *["pl"] * (n % 3 == 0)]
        if n != 20:
            answers.run(n, [], [f"{day(n)}/region={one}" for one in regions], **NOTHING)
    assert missing(answers) == [
        f"{day(n)}/region={one}" for n, one in ((15, "us"), (20, "eu"), (20, "us"))
    ]
    assert unjudged(answers)[:1] == [("rare", 1, "")]


def test_a_removed_day_of_rare_values_is_no_gap(answers):
    """It was deleted on purpose."""
    cells = {n: [f"{day(n)}/airport={(n * 7 + k * k) % 11}" for k in range(3)] for n in range(30)}
    for n in range(30):
        answers.run(n, [], cells[n])
    for cell in cells[0]:
        answers.rows(
            "UPDATE changes SET mode = 'removed', valid_to = NULL WHERE cell = $c", {"c": cell}
        )
    assert missing(answers) == []


# --- schedules ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "odd",
    [datetime(9999, 12, 30), datetime(1970, 1, 1)],  # noqa: DTZ001  (as in the tables)
)
def test_one_run_of_an_impossible_date_hides_no_gap_and_makes_none(answers, odd):
    """The stretch between it and the others is left out."""
    for n in range(30):
        if n != 8:
            answers.run(n, [], [day(n)])
    label = f"dt={odd:%Y-%m-%d}"
    dates = {"logical_date": odd, "data_interval_start": odd}
    answers.run(99, [], [label], **dates, data_interval_end=odd + timedelta(1))
    assert missing(answers) == [day(8)]
    assert [reason for reason, _, _ in unjudged(answers)] == ["left_out"]


def test_a_task_that_was_added_later_owes_nothing_before_though_a_run_is_dated_1970(answers):
    """The DAG's other task ran before."""
    epoch = datetime(1970, 1, 1)  # noqa: DTZ001  (as in the tables)
    for n in range(40):
        answers.run(n, [], [], task="first")
        if n >= 20:
            answers.run(n, [], [day(n)])
    answers.run(99, [], ["dt=1970-01-01"], **dict.fromkeys(DATES, epoch))
    assert missing(answers) == []


@pytest.mark.parametrize(("days", "is_left_out"), [(400, False), (401, True)])
def test_a_year_without_runs_is_an_outage_and_more_is_none(answers, days, is_left_out):
    """Also if few runs are known."""
    for n in (*range(10), *range(10 + days, 20 + days)):
        answers.run(n, [], [day(n)])
    assert len(missing(answers)) == (0 if is_left_out else days)
    assert unjudged(answers) == [("left_out", days, "dag.build")] * is_left_out


def test_dates_after_the_end_of_the_last_run_are_not_expected(answers):
    """One run was for a day in two months."""
    for n in range(20):
        answers.run(n, [], [day(n)])
    later = START.replace(hour=0) + timedelta(80)
    dates = {"logical_date": later, "data_interval_start": later}
    ended = {"started": START + timedelta(21), "ended": START + timedelta(21)}
    answers.run(80, [], [day(80)], **dates, data_interval_end=later + timedelta(1), **ended)
    assert missing(answers) == [day(20), day(21)]


def test_weekends_of_a_schedule_of_working_days_are_not_due(answers):
    """A Friday is, and a holiday on Monday."""
    without = {11, 28}
    for n in range(90):
        if n % 7 < 5 and n not in without:
            answers.run(n, [], [day(n)])
    assert missing(answers) == [day(n) for n in sorted(without)]


def test_days_of_a_week_are_not_due_after_a_daily_schedule_became_a_weekly_one(answers):
    """A day of the daily schedule is."""
    for n in (*range(60), *range(63, 200, 7)):
        if n != 30:
            answers.run(n, [], [day(n)])
    assert missing(answers) == [day(30)]


def test_nights_are_not_due_if_a_task_runs_in_the_day_only(answers):
    """An hour of the day is."""
    hourly(answers, [n for n in range(24 * 20) if 8 <= n % 24 < 18 and n != 60])
    assert missing(answers) == [at_hour(60)]


def test_a_daily_schedule_in_local_time_has_days_without_a_run(answers):
    """Midnight in Berlin is another hour of UTC in summer."""

    def utc(n):
        at = datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")) + timedelta(n)
        return at.astimezone(UTC).replace(tzinfo=None)

    for n in range(366):
        if n not in {90, 200}:
            dates = {"logical_date": utc(n), "data_interval_start": utc(n)}
            answers.run(n, [], [day(n)], **dates, data_interval_end=utc(n + 1))
    assert missing(answers) == [day(90), day(200)]


def test_two_dates_of_a_run_are_both_known_of_a_day_without_one(answers):
    """The table has the day and the day on which it was loaded."""
    for n in range(30):
        if n != 12:
            loaded = day(n + 1).replace("dt", "loaded")
            answers.run(n, [], [f"{day(n)}/{loaded}"])
    assert missing(answers) == [f"{day(12)}/{day(13).replace('dt', 'loaded')}"]


def test_a_backfill_of_several_days_in_one_run_leaves_no_gap(answers):
    """The days have no runs of their own."""
    for n in (*range(10), *range(20, 40)):
        answers.run(n, [], [day(n)])
    answers.run(40, [], [day(n) for n in (*range(10, 20), 40)])
    assert missing(answers) == []


def test_a_partition_of_two_tasks_is_missing_once(answers):
    """Either could have written it."""
    for n in range(20):
        for task in ("build", "repair"):
            answers.run(n, [], [day(n)] * (n != 5), task=task)
    assert because(answers) == [(day(5), -1, "not_written", "build-5")]


# --- unjudged -------------------------------------------------------------------------------------


def test_a_complete_schedule_has_nothing_that_could_not_be_judged(answers):
    """The answer is not only reassuring."""
    for n in range(20):
        answers.run(n, [], [day(n)])
    assert completeness(answers, REVENUE) == ([], [])


def test_runs_that_wrote_an_unknown_part_could_not_be_judged(answers):
    """Each counts once."""
    for n in range(20):
        answers.run(n, [], [day(n)] * (n != 5))
    part = {"namespace": "ns", "name": "revenue", "extent": "unknown", "mode": "overwrite"}
    for _ in range(2):
        answers.add("changes", run_id="build-5", valid_from=START + timedelta(5), **part)
    found = completeness(answers, REVENUE)
    assert found.gaps == []
    assert [one.text for one in found.unjudged] == ["1 run wrote an unknown part of it."]


def test_partitions_unlike_the_others_could_not_be_judged(answers):
    """They are on no axis."""
    for n in range(20):
        answers.run(n, [], [day(n), *[f"dt={NULL}"] * (n == 3), *["dt=old/region=eu"] * (n == 4)])
    assert [(one.count, one.text) for one in completeness(answers, REVENUE).unjudged] == [
        (2, f"2 partitions are unlike the others: dt={NULL}, …")
    ]


def test_a_task_whose_partitions_follow_from_no_date_could_not_be_judged(answers):
    """Another task of the table has a rule."""
    for n in range(30):
        answers.run(n, [], [day(n)])
        answers.run(n, [], [day((n * 17) % 23), day((n * n) % 29)], task="repair")
    assert unjudged(answers) == [("no_rule", 30, "dag.repair")]


def test_runs_without_dates_of_a_scheduled_dataset_could_not_be_judged(answers):
    """They are of another scheduler."""
    for n in range(20):
        answers.run(n, [], [day(n)])
    answers.run(3, [], [day(3)], task="other", **NOTHING)
    assert unjudged(answers) == [("no_dates", 1, "dag.other")]


def test_runs_of_other_dates_than_most_could_not_be_judged(answers):
    """A person started one, and Airflow gave it no data interval."""
    for n in range(20):
        answers.run(n, [], [day(n)] * (n != 5))
    by_hand = {"data_interval_start": None, "data_interval_end": None, "run_id": "by hand"}
    answers.run(5, [], [], state="FAIL", **by_hand)
    assert (missing(answers), unjudged(answers)) == ([day(5)], [("no_dates", 1, "dag.build")])


def test_dates_without_a_step_could_not_be_judged(answers):
    """No date between them is expected."""
    for n in (1, 4, 9, 16, 25, 36, 49, 64, 81):
        answers.run(n, [], [day(n)])
    assert (missing(answers), unjudged(answers)) == ([], [("no_step", 9, "dag.build")])


def test_partitions_without_a_time_could_not_be_judged(answers):
    """Runs of another scheduler wrote regions."""
    for n in range(3):
        answers.run(n, [], ["region=eu", "region=us"], **NOTHING)
    assert (missing(answers), unjudged(answers)) == ([], [("no_rule", 3, "")])


# --- several Airflows -----------------------------------------------------------------------------


def test_the_dates_of_another_airflow_are_not_missing_in_a_dag_of_the_same_name(answers):
    """One Airflow writes each day of a region, the other one each second day of another region."""
    for n in range(12):
        answers.run(n, [], [f"{day(n)}/region=eu"], run_id=f"daily-{n}")
        if n % 2 == 0:
            cells = [f"{day(n)}/region=us"]
            answers.run(n, [], cells, run_id=f"other-{n}", namespace="other", task="build")
    found = [(gap.namespace, folder(gap.partition)) for gap in gaps(answers, REVENUE)]
    assert [one for one in found if one[0] == "other"] == []
