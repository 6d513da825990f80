"""What a user sees of the history: nothing of DAGs that the user may not see, in any answer."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.plugins.history import answers
from airflow_provider_sparklineage.plugins.history.catalog import Catalog
from airflow_provider_sparklineage.plugins.history.permissions import Visibility

ORDERS = DatasetName("file", "/lake/orders")
WANTED = answers.Selection(ORDERS, "dt=2024-05-06")


def run(run_id, dag_id="shop", **other):
    return {"run_id": run_id, "dag_id": dag_id, "job": f"{dag_id}.task", **other}


ENDED = datetime(2024, 5, 6)  # noqa: DTZ001  (as tables have it)
SECRET = DatasetName("file", "/secret")
ACCESSED = [
    {**one._asdict(), "dag_id": dag_id, "job": f"{dag_id}.a", "written": at}
    for one, dag_id, at in (
        (ORDERS, "shop", ENDED),
        (ORDERS, "secret", ENDED),
        (SECRET, "secret", None),
    )
]
RUNS = [
    run("ours", check_status="matched", ended=ENDED),
    run("wrong", check_status="missing", ended=ENDED + timedelta(days=1)),
    run("hidden", "secret", ended=ENDED),
    {"run_id": "theirs", "dag_id": None, "job": "dbt.model"},
]


def hop(depth, run_id, via=(), name="raw"):
    return {
        "depth": depth,
        "dataset": {"namespace": "file", "name": f"/lake/{name}"},
        "partition": {"dt": "2024-05-06"},
        "column": None,
        "transformations": [],
        "is_certain": True,
        "run": run_id and {"run_id": run_id, "job": "secret.task", "ended": None},
        "via": list(via),
    }


class History:
    """A history whose answers are given; rows by the table that a query is of."""

    url, bound = "", None

    def __init__(
        self,
        *,
        up=(),
        down=(),
        plan=None,
        stale=(),
        gaps=(),
        written=(),
        read=(),
        jobs=(),
        named=(),
        drift=None,
        naming=None,
    ):
        self._up, self._down = list(up), list(down)
        self._plan = plan or {"steps": [], "by_hand": []}
        self._stale, self._gaps = list(stale), list(gaps)
        self._written, self._read = list(written), list(read)
        self._jobs, self._named = list(jobs), list(named)
        self._drift, self._naming = drift or {}, naming or {}
        self.generation = id(self)  # each has a cache of its own

    def rows(self, sql, parameters=None):
        if "GROUP BY namespace, name, dag_id" in sql:
            return ACCESSED
        if "AS partitions" in sql:
            return []
        if "SELECT DISTINCT dag_id" in sql:
            return self._jobs
        if "$column" in sql:
            return self._naming.get(parameters["column"], [])
        if "wanted" in sql or "seen" in sql:
            return [{"namespace": "file", "name": n, "cell": cell} for n, cell in self._named]
        if "FROM runs" in sql:
            return [row for row in RUNS if row["run_id"] in parameters["ids"]]
        if "FROM changes" in sql:
            return self._written
        return self._read

    def trace(self, *_):
        return self._up

    def downstream(self, *_):
        return self._down

    def plan(self, *_):
        return self._plan

    def refresh(self, *_):
        return self._plan

    def stale(self, *_):
        return self._stale

    def failed_parts(self, *_):
        return []

    def gaps(self, *_):
        return self._gaps

    def unjudged(self, *_):
        return [{"text": "1 run of secret.task has no usual dates.", "job": "secret.task"}]

    def unjudged_of_stale(self, _, is_shown):
        unseen = [one for one in (ORDERS, SECRET) if is_shown(one)]
        return [f"No known run writes {', '.join(one.name for one in unseen)}."]

    def drift(self, task):
        return self._drift[task]


@pytest.fixture
def visitor():
    """Give a user who may not see one DAG, and may clear none."""
    dags = frozenset({"secret"})
    return Visibility(lambda dag: dag != "secret", lambda _: False, lambda: dags, lambda: False)


@pytest.fixture
def admin():
    dags = frozenset({"secret"})
    return Visibility(lambda _: True, lambda _: True, lambda: dags, lambda: True, "here")


@pytest.mark.parametrize(
    ("one", "is_seen"),
    [
        pytest.param({"dag_id": "shop", "job": "shop.a"}, True, id="of a DAG that may be seen"),
        pytest.param({"dag_id": "secret", "job": "x"}, False, id="of one that may not"),
        pytest.param({"dag_id": None, "job": "secret.a.b"}, False, id="named after a DAG's task"),
        pytest.param({"dag_id": None, "job": "secret"}, False, id="named after a DAG"),
    ],
)
def test_a_run_is_as_visible_as_its_dag(visitor, one, is_seen):
    assert visitor.sees(one) is is_seen


@pytest.mark.parametrize("job", ["dbt.model", "a_dag_that_was_deleted.task", "secretly", None])
def test_a_run_of_another_producer_is_for_those_who_may_see_these(visitor, admin, job):
    one = {"dag_id": None, "job": job}
    assert (visitor.sees(one), admin.sees(one)) == (False, True)


def test_airflow_is_asked_once_for_each_dag():
    asked = []
    of_user = Visibility(lambda dag: not asked.append(dag), asked.append, frozenset, lambda: False)
    assert [of_user.sees(run("x")) for _ in range(3)] == [True] * 3
    assert asked == ["shop"]


UP = [
    hop(0, "ours", name="orders"),
    hop(1, "hidden", ["ours"]),
    hop(2, "ours", ["hidden"], name="behind"),
]
DOWN = [
    hop(1, "ours", ["wrong"], name="weekly"),
    hop(1, "hidden", ["wrong"], name="unseen"),
    hop(2, "ours", ["hidden"], name="after"),
]


RAW = ("/lake/raw", "dt=2024-05-06")
BOTH = [{"dag_id": "shop", "job": "shop.task"}, {"dag_id": "secret", "job": "secret.task"}]


def test_upstream_ends_at_a_run_that_may_not_be_seen(visitor):
    found = answers.partition_graph(WANTED, History(up=UP, named=[RAW]), visitor)["upstream"]
    assert [
        (h["depth"], h["run"] and h["run"]["run_id"], h["is_hidden"]) for h in found["hops"]
    ] == [
        (0, "ours", False),
        (1, None, True),
    ]
    assert found["hidden"] == 1


def test_upstream_has_no_partition_that_only_hidden_runs_name(visitor):
    found = answers.partition_graph(WANTED, History(up=UP), visitor)["upstream"]
    assert [h["depth"] for h in found["hops"]] == [0]
    assert found["hidden"] == 2


@pytest.mark.parametrize("question", [answers.partition_graph, answers.rerun_plans])
def test_a_partition_that_only_hidden_runs_name_is_not_there(question, visitor, admin):
    history = History(up=UP, jobs=BOTH, named=[("/lake/orders", "dt=2024-05-05")])
    with pytest.raises(HistoryError, match="no such partition or column"):
        question(WANTED, history, visitor)
    assert question(WANTED, history, admin)


def test_a_day_is_there_if_a_region_of_it_is_named(visitor):
    history = History(jobs=BOTH, named=[("/lake/orders", "dt=2024-05-06/region=eu")])
    assert answers.partition_graph(WANTED, history, visitor)["upstream"]["hops"] == []


def test_downstream_has_nothing_that_such_a_run_wrote_nor_what_came_of_it(visitor):
    found = answers.partition_graph(WANTED, History(down=DOWN), visitor)["downstream"]
    assert [h["dataset"]["name"] for h in found["hops"]] == ["/lake/weekly"]
    assert found["hidden"] == 2


def test_who_may_see_all_sees_all(admin):
    found = answers.partition_graph(WANTED, History(up=UP, down=DOWN), admin)
    assert [len(found[side]["hops"]) for side in ("upstream", "downstream")] == [3, 3]


def step(run_id, **other):
    of = {"namespace": "file", "name": "/lake/raw"}
    reason = {"dataset": of, "partition": {"dt": "2024-05-06"}, "text": "read raw dt=2024-05-06"}
    return {"run_id": run_id, "wave": 0, "reasons": [reason], **other}


PLAN = {"steps": [step("ours"), step("hidden", wave=1)], "by_hand": [step("theirs")]}


def test_a_plan_has_a_number_for_what_may_not_be_seen(visitor):
    found = answers.rerun_plans(WANTED, History(plan=PLAN), visitor)["impact"]
    assert [(s["run"]["run_id"], s["may_clear"]) for s in found["steps"]] == [("ours", False)]
    assert found["by_hand"] == []
    assert found["hidden"] == 2


def test_what_airflow_did_not_run_is_in_the_plan_of_who_may_see_it(admin):
    found = answers.rerun_plans(WANTED, History(plan=PLAN), admin)["impact"]
    assert [s["run"]["run_id"] for s in found["by_hand"]] == ["theirs"]
    assert found["hidden"] == 0


@pytest.mark.parametrize("job", ["shop.orders", "secret.orders"])
def test_a_date_without_a_dag_run_is_by_hand_for_who_may_see_its_task(job):
    user = Visibility(
        lambda dag: dag == "shop",
        lambda _: True,
        lambda: frozenset({"shop", "secret"}),
        lambda: False,
    )
    plan = {"steps": [], "by_hand": [step("", job=job)]}
    found = answers.rerun_plans(WANTED, History(plan=plan), user)["impact"]
    is_seen = job == "shop.orders"
    assert ([s["run"]["job"] for s in found["by_hand"]], found["hidden"]) == (
        ([job], 0) if is_seen else ([], 1)
    )


OF_SHOP = {"dag_id": "shop", "job": "shop.task"}
OF_SECRET = {"dag_id": "secret", "job": "secret.task"}


@pytest.mark.parametrize("question", [answers.partition_graph, answers.rerun_plans])
def test_a_column_that_only_hidden_runs_name_is_as_one_that_is_not_there(question, visitor, admin):
    naming = {"amount": [OF_SHOP, OF_SECRET], "salary": [OF_SECRET]}
    history = History(up=UP, jobs=BOTH, named=[("/lake/orders", "dt=2024-05-06")], naming=naming)
    assert question(WANTED._replace(column="amount"), history, visitor)
    messages = set()
    for column in ("salary", "no_such_column"):
        with pytest.raises(HistoryError) as refused:
            question(WANTED._replace(column=column), history, visitor)
        messages.add(str(refused.value))
    assert messages == {"There is no such partition or column."}
    assert question(WANTED._replace(column="salary"), history, admin)


@pytest.mark.parametrize(
    ("named", "text"), [([RAW], "read raw dt=2024-05-06"), ([], "read /lake/raw")]
)
def test_a_reason_names_a_partition_only_if_a_run_does_that_may_be_seen(visitor, named, text):
    found = answers.rerun_plans(WANTED, History(plan=PLAN, named=named), visitor)["impact"]
    assert [s["reasons"] for s in found["steps"]] == [[text]]


def test_what_airflow_did_not_run_is_cleared_by_nobody(admin):
    found = answers.rerun_plans(WANTED, History(plan=PLAN), admin)["refresh"]
    assert [s["may_clear"] for s in found["steps"]] == [True, True]
    assert [s["may_clear"] for s in found["by_hand"]] == [False]


def test_a_plan_of_spans_does_not_tell_of_partitions_that_may_not_be_seen(visitor, admin):
    """Else the number of hidden steps would tell whether there is one between two names."""
    of = {"jobs": [{"dag_id": "secret", "job": "secret.a"}, {"dag_id": "shop", "job": "shop.a"}]}
    asked = []

    class Stale(History):
        def refresh(self, _, is_wanted):
            days = ({"dt": f"2024-05-0{day}"} for day in range(5, 9))
            asked.append([day["dt"] for day in days if is_wanted(day)])
            return super().refresh()

    for user in (visitor, admin):
        history = Stale(named=[("/lake/orders", "dt=2024-05-06")], **of)
        answers.refresh_plan(ORDERS, [("dt=2024-05-06", "dt=2024-05-07")], history, user)
    assert asked == [["2024-05-06"], ["2024-05-06", "2024-05-07"]]


def test_a_plan_says_of_how_many_datasets_something_may_be_missing(visitor):
    found = answers.rerun_plans(WANTED, History(plan={**PLAN, "left_out": 2}), visitor)["impact"]
    assert found["left_out"] == 2


def due(**other):
    names = {"dag_id": "shop", "task_id": "orders", "dag_run_id": "r1", "map_index": -1}
    return step("", **names | other)


def test_what_was_never_run_is_in_the_plan_of_who_may_see_its_dag(visitor):
    plan = {"steps": [due(), due(dag_id="secret")], "by_hand": []}
    found = answers.rerun_plans(WANTED, History(plan=plan), visitor)["impact"]
    assert [s["run"]["job"] for s in found["steps"]] == ["shop.orders"]
    assert found["hidden"] == 1


def test_what_another_airflow_ran_is_not_cleared_here(admin):
    steps = [step("ours", namespace="here"), step("wrong", namespace="there", is_certain=False)]
    plan = {"steps": steps, "by_hand": []}
    found = answers.rerun_plans(WANTED, History(plan=plan), admin)["impact"]["steps"]
    assert [s["may_clear"] for s in found] == [True, False]
    assert [s["is_elsewhere"] for s in found] == [False, True]
    assert [s["is_certain"] for s in found] == [True, False]


def written(day, run_id, is_there=True):
    name = f"dt=2024-05-{day:02}"
    at = datetime(2024, 5, day, 12)  # noqa: DTZ001  (as tables have it)
    return {"cell": name, "partition": name, "run_id": run_id, "written": at, "is_there": is_there}


def stale(day, by):
    cause = {"dataset": {"namespace": "file", "name": "/lake/raw"}, "partition": {"dt": "x"}}
    cause |= {"at": "2024-05-09T00:00:00Z", "how": "overwrite", "run": {"run_id": by}}
    return {"partition": {"dt": f"2024-05-{day:02}"}, "cause": cause}


CALENDAR = History(
    written=[
        written(1, "ours"),
        written(2, "wrong"),
        written(3, "ours"),
        written(4, "ours", False),
        written(7, "hidden"),
    ],
    read=[{"cell": f"dt=2024-05-0{n}", "partition": f"dt=2024-05-0{n}"} for n in (1, 5)],
    stale=[stale(3, "hidden"), stale(7, "ours")],
    gaps=[{"partition": {"dt": "2024-05-06"}}],
)


def test_each_partition_has_a_state(admin):
    found = answers.partition_states(ORDERS, CALENDAR, admin)["partitions"]
    days = [name.removeprefix("dt=2024-05-0") for name in found["names"]]
    assert dict(zip(days, found["states"], strict=True)) == {
        "1": "f",
        "2": "m",
        "3": "s",
        "4": "x",
        "5": "u",
        "6": "n",
        "7": "s",
    }
    assert found["written"][0] == 1_714_564_800


def test_writers_and_causes_that_may_not_be_seen_have_no_name(visitor, admin):
    found = answers.partition_states(ORDERS, CALENDAR, visitor)
    assert found["partitions"]["runs"][-1] is None
    assert set(found["causes"]) == {"dt=2024-05-07"}
    assert found["unjudged"] == ["No known run writes /lake/orders."]
    all_of_it = answers.partition_states(ORDERS, CALENDAR, admin)
    assert all_of_it["unjudged"] == [
        "1 run of secret.task has no usual dates.",
        "No known run writes /lake/orders, /secret.",
    ]
    assert set(all_of_it["causes"]) == {
        "dt=2024-05-03",
        "dt=2024-05-07",
    }


def test_partitions_that_only_hidden_runs_name_are_not_there(visitor, admin):
    gaps = [
        {"partition": {"dt": "2024-05-08"}, "dag_id": "secret", "job": "secret.task"},
        {"partition": {"dt": "2024-05-09"}, "dag_id": "shop", "job": "shop.task"},
        {"partition": {"dt": "2024-05-10"}, "dag_id": None, "job": ""},
    ]
    history = History(
        written=[written(1, "ours"), written(7, "hidden")],
        read=[{"cell": f"dt=2024-05-0{n}", "partition": f"dt=2024-05-0{n}"} for n in (2, 3)],
        stale=[stale(7, "ours")],
        gaps=gaps,
        jobs=BOTH,
        named=[("/lake/orders", "dt=2024-05-01"), ("/lake/orders", "dt=2024-05-02")],
    )
    found = answers.partition_states(ORDERS, history, visitor)
    days = [int(name[-2:]) for name in found["partitions"]["names"]]
    assert (days, found["partitions"]["states"], found["causes"]) == ([1, 2, 9], "fun", {})
    assert len(answers.partition_states(ORDERS, history, admin)["partitions"]["names"]) == 7


def test_what_is_known_at_once_says_that_the_rest_is_not(admin):
    found = answers.partition_states(ORDERS, CALENDAR, admin, is_quick=True)
    assert (found["partitions"]["states"], found["causes"]) == ("cmcxuc", {})


def test_all_of_a_dataset_is_one_partition_without_a_name(admin):
    whole = {**written(1, "ours"), "cell": None, "partition": None}
    found = answers.partition_states(ORDERS, History(written=[whole]), admin)["partitions"]
    assert (found["names"], found["states"]) == ([""], "f")


def change(run_id, message):
    of = {"kind": "input_went", "dataset": {"namespace": "file", "name": "/lake/raw"}}
    return {**of, "column": None, "run": {"run_id": run_id}, "message": message}


CHANGED = {
    "shop.task": [change("ours", "raw is no longer read."), change("wrong", "orders is read now.")],
    "secret.task": [change("hidden", "salaries is read now.")],
}


def test_changes_are_those_of_the_tasks_that_may_be_seen_the_last_ones_first(visitor, admin):
    history = History(jobs=BOTH, drift=CHANGED)
    answer = answers.run_changes(WANTED, history, visitor)
    assert [one["message"] for one in answer["changes"]] == [
        "orders is read now.",
        "raw is no longer read.",
    ]
    assert (answer["tasks"], answer["hidden"]) == (["shop.task"], 1)
    assert "secret" not in json.dumps(answer)
    assert len(answers.run_changes(WANTED, history, admin)["changes"]) == 3


def test_of_many_changes_the_last_ones_are_listed(admin):
    many = {"shop.task": [change("ours", str(n)) for n in range(answers.MAX_CHANGES + 5)]}
    answer = answers.run_changes(WANTED, History(jobs=BOTH[:1], drift=many), admin)
    assert (len(answer["changes"]), answer["more"]) == (answers.MAX_CHANGES, 5)


@pytest.mark.parametrize(
    "answer",
    [
        lambda user: answers.partition_graph(WANTED, History(up=UP, down=DOWN), user),
        lambda user: answers.rerun_plans(WANTED, History(plan=PLAN), user),
        lambda user: answers.partition_states(ORDERS, CALENDAR, user),
        lambda user: catalog().search("", user),
    ],
    ids=["graph", "plan", "partitions", "datasets"],
)
def test_no_answer_has_the_name_of_a_dag_that_may_not_be_seen(answer, visitor, admin):
    assert "secret" not in json.dumps(answer(visitor))
    assert "secret" in json.dumps(answer(admin))


# --- datasets -------------------------------------------------------------------------------------


class Accessed:
    """A history with datasets."""

    def rows(self, sql):
        if "FROM changes" in sql:
            return [{"namespace": "file", "name": "/lake/orders", "partitions": 3}]
        return ACCESSED


def catalog():
    return Catalog(Accessed())


def test_a_dataset_is_found_if_a_run_that_may_be_seen_accessed_it(visitor, admin):
    found = catalog().search("", visitor)
    assert [(d["name"], d["partitions"]) for d in found["datasets"]] == [("/lake/orders", None)]
    everything = catalog().search("", admin)["datasets"]
    assert [(d["name"], d["partitions"]) for d in everything] == [
        ("/lake/orders", 3),
        ("/secret", 0),
    ]
    assert catalog().is_visible("file", "/secret", visitor) is False
    assert catalog().is_visible("file", "/secret", admin) is True


@pytest.mark.parametrize(("text", "count"), [("ORD lake", 1), ("file", 1), ("orders x", 0)])
def test_all_words_of_a_search_are_in_the_name(visitor, text, count):
    assert catalog().search(text, visitor)["count"] == count
