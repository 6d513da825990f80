"""The endpoints of the page: for whom, and of what, on an app with a history that is given."""

from __future__ import annotations

import pytest
from airflow.api_fastapi.core_api.security import get_user
from fastapi import HTTPException
from fastapi.testclient import TestClient

from airflow_provider_sparklineage.history import merging_process
from airflow_provider_sparklineage.history.merging_process import Keeper
from airflow_provider_sparklineage.model.exceptions import HistoryError, LimitError
from airflow_provider_sparklineage.plugins import app as served
from airflow_provider_sparklineage.plugins.history.permissions import Visibility

pytestmark = pytest.mark.airflow

RUNS = [
    {
        "run_id": f"{dag}-1",
        "dag_id": dag,
        "job": f"{dag}.task",
        "check_status": "matched",
        "ended": None,
    }
    for dag in ("shop", "secret")
]


class History:
    """Two datasets, each of one DAG."""

    url, generation, built_at = "file:///history", "1", "2024-05-06T00:00:00Z"
    bound = None

    def rows(self, sql, parameters=None):
        if "FROM accesses" in sql and "dag_id" in sql:
            of = {"namespace": "file", "written": None}
            names = [("/lake/orders", "shop"), ("/lake/salaries", "secret")]
            known = [{**of, "name": n, "dag_id": d, "job": f"{d}.task"} for n, d in names]
            return [{**one, "cell": "dt=2024-05-06"} for one in known]
        if "list_contains($ids" in sql:
            return [run for run in RUNS if run["run_id"] in parameters["ids"]]
        return []

    def trace(self, *_):
        problem = "There is no such partition; secret ones are …"
        raise HistoryError(problem)

    def downstream(self, *_):
        return []

    def plan(self, *_):
        return {"steps": [], "by_hand": []}

    def refresh(self, *_):
        step = {"run_id": "secret-1", "wave": 0, "reasons": []}
        return {"steps": [step], "by_hand": []}

    def stale(self, *_):
        return []

    def failed_parts(self, *_):
        return []

    def gaps(self, *_):
        return []

    def stale_of_all(self):
        return []

    def gaps_of(self, _):
        return []

    def plan_of_all(self, _):
        return self.refresh()

    def unjudged(self, *_):
        return [{"text": "1 run wrote an unknown part of it.", "job": ""}]

    def unjudged_of_stale(self, *_):
        return []

    def drift(self, task):
        of = {"run": {"run_id": "shop-1"}, "kind": "input_went", "dataset": None, "column": None}
        return [{**of, "message": task}]


@pytest.fixture
def app(app):
    user = Visibility(lambda dag: dag == "shop", lambda _: True, frozenset, lambda: False)
    app.dependency_overrides[served.visibility] = lambda: user
    app.dependency_overrides[served._history] = History
    return app


@pytest.fixture
def ask(app):
    client = TestClient(app, raise_server_exceptions=False)

    def ask(what, status=200, **query):
        answer = client.get(f"/api/history/{what}", params=query)
        assert answer.status_code == status, answer.text
        assert "secret" not in answer.text
        return answer

    return ask


ORDERS = {"namespace": "file", "name": "/lake/orders"}
WITHOUT_DATASET = ["datasets", "state", "columns", "health", "health/plan"]
QUESTIONS = ["partitions", "graph", "columns/graph", "plan", "changes"]


def test_datasets_of_dags_that_may_not_be_seen_are_not_found(ask):
    answer = ask("datasets")
    assert [d["name"] for d in answer.json()["datasets"]] == ["/lake/orders"]
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("what", QUESTIONS)
def test_what_may_not_be_seen_is_not_there_and_no_different_from_what_is_not(ask, what):
    hidden = ask(what, 404, namespace="file", name="/lake/salaries").json()
    assert hidden == ask(what, 404, namespace="file", name="/nosuch").json()


def test_partitions_and_plan_of_what_may_be_seen(ask):
    answer = ask("partitions", **ORDERS).json()
    assert answer["partitions"]["names"] == []
    assert answer["unjudged"] == []  # partitions that this user may not see may be named
    assert [c["message"] for c in ask("changes", **ORDERS).json()["changes"]] == ["shop.task"]
    hidden = {"steps": [], "by_hand": [], "hidden": 1, "left_out": 0}
    assert ask("plan", **ORDERS).json()["refresh"] == hidden


def test_a_plan_of_spans_has_the_stale_partitions_in_them_that_may_be_seen(app, ask):
    asked = []

    class Stale(History):
        def refresh(self, _, is_wanted):
            days = [{"dt": f"2024-05-0{day}"} for day in range(1, 10)]
            asked.append([day["dt"][-1] for day in days if is_wanted(day)])
            return super().refresh()

    app.dependency_overrides[served._history] = Stale
    spans = {"first": ["dt=2024-05-02", "dt=2024-05-05"]}
    spans |= {"last": ["dt=2024-05-02", "dt=2024-05-08"]}
    assert ask("plan", **ORDERS, **spans).json() == {
        "refresh": {"steps": [], "by_hand": [], "hidden": 1, "left_out": 0}
    }
    assert asked == [["6"]]  # the only one that a visible run names


def test_a_plan_of_spans_needs_both_ends_of_each(ask):
    ask("plan", 422, **ORDERS, first=["dt=2024-05-02"])
    ask("plan", 422, **ORDERS, first=["x"] * 1001, last=["x"] * 1001)
    ask("plan", 404, namespace="file", name="/lake/salaries", first=["a"], last=["z"])


@pytest.mark.parametrize("what", QUESTIONS)
def test_a_question_that_takes_too_long_is_answered_with_what_to_do(app, ask, what):
    class Slow(History):
        def rows(self, sql, parameters=None):
            if "list_contains($ids" in sql or "JOIN runs" in sql:
                return super().rows(sql, parameters)
            return self.trace()

        def trace(self, *_):
            problem = "The answer took longer than 30 s."
            raise LimitError(problem, "Ask for less.")

        stale = plan = drift = trace

    app.dependency_overrides[served._history] = Slow
    answer = ask(what, 503, **ORDERS)
    assert answer.json() == {"detail": "The answer took longer than 30 s. Ask for less."}
    assert answer.headers["Cache-Control"] == "no-store"


def test_health_has_nothing_of_what_may_not_be_seen(ask):
    answer = ask("health").json()
    assert (answer["fine"], answer["datasets"], answer["totals"]) == (1, [], {})
    plan = ask("health/plan").json()
    assert (plan["steps"], plan["hidden"], plan["more"]) == ([], 1, 0)


@pytest.mark.parametrize(
    ("what", "status", "query"),
    [
        ("datasets", 200, {}),
        ("partitions", 404, {"namespace": "file", "name": "/nosuch"}),
        ("graph", 422, {**ORDERS, "depth": 0}),
    ],
)
def test_no_answer_is_kept_by_a_browser_and_no_error_either(ask, what, status, query):
    assert ask(what, status, **query).headers["Cache-Control"] == "no-store"


def test_a_partition_that_is_not_there_is_not_answered_with_those_that_are(ask):
    answer = ask("graph", 404, partition="dt=2024-05-06", **ORDERS)
    assert answer.json()["detail"] == "There is no such partition or column."


def test_these_are_all_questions(app):
    paths = [route.path for route in app.routes if route.path.startswith("/api/history/")]
    assert sorted(paths) == sorted(
        f"/api/history/{what}" for what in (*WITHOUT_DATASET, *QUESTIONS)
    )


@pytest.mark.parametrize("what", [*WITHOUT_DATASET, *QUESTIONS])
def test_without_a_session_nothing_is_opened(app, ask, monkeypatch, what):
    def nobody():
        raise HTTPException(401)

    def opened(*_, **__):
        pytest.fail("the history was opened")

    del app.dependency_overrides[served.visibility]
    app.dependency_overrides[get_user] = nobody
    app.dependency_overrides[served._history] = opened
    monkeypatch.setattr(served._KEEPER, "state", opened)
    assert ask(what, 401, **ORDERS).headers["Cache-Control"] == "no-store"


def test_where_there_is_no_history_the_page_says_what_to_run(app, ask):
    why = served.UnavailableError("DuckDB is missing.", "Install it.", (served.INSTALL,))
    app.dependency_overrides[served._history] = lambda: why
    answer = ask("datasets").json()
    assert answer["unavailable"]["commands"] == [served.INSTALL]
    assert answer["datasets"] == []
    ask("partitions", 503, **ORDERS)


@pytest.mark.parametrize(("merged_by", "may_merge"), [("page", True), ("command", False)])
def test_the_state_of_the_store_is_asked_and_merging_begins_where_that_is_wanted(
    ask, monkeypatch, tmp_path, merged_by, may_merge
):
    started = []
    monkeypatch.setattr(served, "_KEEPER", Keeper())
    monkeypatch.setattr(merging_process, "start", started.append)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__HISTORY_URL", tmp_path.as_uri())
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__HISTORY_MERGED_BY", merged_by)
    answer = ask("state").json()
    assert started == [tmp_path.as_uri()] * may_merge
    assert (answer["generation"], answer["waiting"], answer["problem"]) == (0, 0, "")


def test_a_store_that_cannot_be_read_is_an_error(ask, monkeypatch, tmp_path):
    (tmp_path / "manifest.json").write_text("[]")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__HISTORY_URL", tmp_path.as_uri())
    assert "cannot be read" in ask("state", 503).json()["detail"]


def test_nothing_can_be_changed_here(app):
    methods = {m for r in app.routes for m in getattr(r, "methods", None) or ()}
    assert methods <= {"GET", "HEAD"}


def test_files_of_the_page_need_no_session(app):
    client = TestClient(app)
    assert client.get("/history/page.js").headers["Cache-Control"] == "no-cache"
    assert client.get("/history/sources.json").status_code == 404
    assert client.get("/history/..%2Fanswers.py").status_code == 404
