"""The web application that Airflow's API server mounts: all endpoints of the tab and of the page.

Data needs a session of Airflow: without a session the answer is 401. The tab's lineage is for users
with permission to read the XComs of the DAG: for others the answer is 403. The page's endpoints are
below ``/sparklineage/api/history/``. They leave out of each answer all runs and partitions that the
user may not see (:mod:`~airflow_provider_sparklineage.plugins.history.permissions`); for a dataset
that only hidden runs accessed the answer is 404. The files of tab and page contain no data and need
no session.

No endpoint changes anything: the page clears task instances by Airflow's own API, with the user's
own permission and in Airflow's own log.
"""

from __future__ import annotations

# FastAPI reads annotations when it makes the routes, so they cannot be imported for types only.
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.common.db.common import SessionDep  # noqa: TC002
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.models.dag import DagModel
from airflow.providers.openlineage import conf as openlineage
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse
from sqlalchemy import select

from airflow_provider_sparklineage.history.merging_process import Keeper
from airflow_provider_sparklineage.hooks.sources import (
    history_merged_by,
    history_other_producers,
    history_url,
)
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import LimitError, SparkLineageError
from airflow_provider_sparklineage.plugins import page, task_lineage
from airflow_provider_sparklineage.plugins.history import answers, catalog, health
from airflow_provider_sparklineage.plugins.history.opened import OpenedHistory
from airflow_provider_sparklineage.plugins.history.permissions import Visibility
from airflow_provider_sparklineage.settings.option_kinds import HistoryMerger, OtherProducers
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod

_MAX_INTEGER = 2**31 - 1
"""The largest number that the columns of Airflow's database can store."""
_MAX_TEXT = 4000  # characters of a name or a partition in a URL
_Text = Annotated[str, Query(max_length=_MAX_TEXT)]
_MAX_SPANS = 1000
_Texts = Annotated[Sequence[_Text], Query(max_length=_MAX_SPANS)]
_FOR_EVER = "public, max-age=31536000, immutable"

INSTALL = "pip install 'airflow-provider-sparklineage[history]'"
BUILD = "airflow sparklineage history build"


def make_app() -> FastAPI:
    """Make the application that Airflow's API server mounts."""
    # Without FastAPI's own pages of documentation, which would be public.
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.exception_handler(LimitError)(_given_up)
    app.middleware("http")(_uncached)
    # Tab and page are one application, whose files the addresses of both have.
    for path in ("/page/{file}", "/history/{file}"):
        app.get(path)(_file)
    readable = [Depends(requires_access_dag("GET", DagAccessEntity.XCOM))]
    app.get("/api/dags/{dag_id}/lineage", dependencies=readable)(_task_lineage)
    app.get("/api/dags/{dag_id}/state", dependencies=readable)(_task_progress)
    app.get("/api/dags/{dag_id}/partitions", dependencies=readable)(_task_partitions)
    app.include_router(_page_router())
    return app


def _given_up(_: Request, error: Exception) -> Response:
    """Answer a question that takes more time or memory than the API server gives it."""
    return JSONResponse({"detail": str(error)}, 503)


def _page_router() -> APIRouter:
    """Make the routes of the page: the API below ``/api/history``."""
    router = APIRouter()
    api = APIRouter(prefix="/api/history")
    api.get("/state")(_state)
    api.get("/datasets")(_datasets)
    api.get("/partitions")(_partitions)
    api.get("/graph")(_graph)
    api.get("/plan")(_plan)
    api.get("/changes")(_changes)
    api.get("/columns")(_columns)
    api.get("/columns/graph")(_column_graph)
    api.get("/health")(_health)
    api.get("/health/plan")(_plan_of_all)
    router.include_router(api)
    return router


def _file(file: str) -> Response:
    if file not in page.files():
        raise HTTPException(404)
    # Others never come from the browser's cache unasked: they name the files of their version.
    caching = _FOR_EVER if page.is_of_one_content(file) else "no-cache"
    return Response(page.content(file), 200, {"Cache-Control": caching}, page.files()[file])


def _task(
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: Annotated[int, Query(ge=-1, le=_MAX_INTEGER)] = -1,
) -> TaskIdentity:
    return TaskIdentity(dag_id, task_id, run_id, 0, map_index)


Task = Annotated[TaskIdentity, Depends(_task)]


def _task_lineage(
    wanted: Task,
    session: SessionDep,
    try_number: Annotated[int | None, Query(ge=1, le=_MAX_INTEGER)] = None,
) -> dict[str, Any]:
    of_try = msgspec.structs.replace(wanted, try_number=try_number or 0)
    return _there(task_lineage.lineage(of_try, session))


# An open tab calls this again and again while the task runs, so it decodes no XCom and asks no
# archive.
def _task_progress(wanted: Task, session: SessionDep) -> dict[str, Any]:
    return _there(task_lineage.progress(wanted, session))


# The partitions that other runs accessed; an open tab asks for them when it has drawn this run.
def _task_partitions(wanted: Task, session: SessionDep) -> dict[str, Any]:
    return _there(task_lineage.history(wanted, session))


def _there(
    answer: task_lineage.Answer | task_lineage.Progress | task_lineage.PartitionHistory | None,
) -> dict[str, Any]:
    if answer is None:
        raise HTTPException(404, "There is no such task instance.")
    return answer._asdict()


async def _uncached(
    request: Request, respond: Callable[[Request], Awaitable[Response]]
) -> Response:
    """Keep answers of the API, errors too, out of caches.

    Another user of the same machine must not find them in the browser's cache.
    """
    response = await respond(request)
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def visibility(request: Request, user: GetUserDep, session: SessionDep) -> Visibility:
    """Give the permissions of a request's user, as Airflow's auth manager has them.

    It is not called for a request without a session, which Airflow answers with 401.
    """

    def may(method: ResourceMethod, entity: DagAccessEntity) -> Callable[[str], bool]:
        def ask(dag_id: str) -> bool:
            try:
                # Airflow's own check, which knows about teams.
                requires_access_dag(method, entity, dag_id)(request, user)
            except HTTPException:
                return False
            return True

        return ask

    def known() -> frozenset[str]:
        return frozenset(session.scalars(select(DagModel.dag_id)))

    may_read = may("GET", DagAccessEntity.XCOM)

    def sees_other_producers() -> bool:
        if history_other_producers() is OtherProducers.EVERYBODY:
            return True
        # Not by requires_access_dag, which without an id takes one from the request's URL.
        may_read_all = get_auth_manager().is_authorized_dag(
            method="GET", user=user, access_entity=DagAccessEntity.XCOM, details=DagDetails()
        )
        return may_read_all and all(map(may_read, known()))

    may_clear = may("PUT", DagAccessEntity.TASK_INSTANCE)
    return Visibility(may_read, may_clear, known, sees_other_producers, openlineage.namespace())


User = Annotated[Visibility, Depends(visibility)]


class UnavailableError(SparkLineageError):
    """The reason why there is no history to ask: a library, the store or its address is missing.

    :param commands: commands that fix it, in the order in which to run them
    """

    def __init__(self, problem: str, fix: str, commands: tuple[str, ...] = ()) -> None:
        super().__init__(problem, fix)
        self.commands = commands


def _history() -> Iterator[OpenedHistory | UnavailableError]:
    """Open the history for a request, and close it after that; yield it, or why there is none."""
    if find_spec("duckdb") is None:
        problem = (
            "The history is read by DuckDB, which is not installed where Airflow's API server is."
        )
        fix = "Install it, and restart the API server."
        yield UnavailableError(problem, fix, (INSTALL,))
        return
    try:
        history = OpenedHistory(history_url())
    except SparkLineageError as error:
        yield UnavailableError(error.problem, error.fix, (BUILD,))
        return
    with closing(history):
        yield history


# Dependencies are resolved in the order of the parameters. In each endpoint the user comes before
# the history, so that no history is opened without a user.
RequestHistory = Annotated[OpenedHistory | UnavailableError, Depends(_history)]


def _available(history: OpenedHistory | UnavailableError) -> OpenedHistory:
    if isinstance(history, UnavailableError):
        raise HTTPException(503, str(history))
    return history


_KEEPER = Keeper()


# An open page calls this again and again. The user is asked for, so that only users start merging.
def _state(_: User) -> dict[str, Any]:
    is_installed = find_spec("duckdb") is not None
    may_merge = is_installed and history_merged_by() is not HistoryMerger.COMMAND
    try:
        return _KEEPER.state(history_url(), may_merge=may_merge)._asdict()
    except SparkLineageError as error:
        raise HTTPException(503, str(error)) from error


def _datasets(
    user: User, history: RequestHistory, q: _Text = "", sort: catalog.Sorting = "trouble"
) -> dict[str, Any]:
    if isinstance(history, UnavailableError):
        why = {"message": str(history), "commands": history.commands}
        return {"unavailable": why, "built_at": None, "datasets": [], "count": 0}
    every = catalog.catalog_of(history)
    troubles = health.known_troubles(every, history, user)
    found = every.search(q, user, sort, troubles)
    return {"unavailable": None, "built_at": history.built_at, **found}


# If the full answer takes long, the page also asks for a quick answer.
def _health(user: User, history: RequestHistory, *, quick: bool = False) -> dict[str, Any]:
    every = catalog.catalog_of(_available(history))
    return health.health(every, _available(history), user, is_quick=quick)


def _plan_of_all(user: User, history: RequestHistory) -> dict[str, Any]:
    gaps = health.gaps_of_all(_available(history), catalog.catalog_of(_available(history)))
    return answers.plan_of_all(_available(history), gaps, user)


def _selected(
    user: User,
    history: RequestHistory,
    namespace: _Text,
    name: _Text,
    partition: _Text = "",
    column: _Text = "",
    depth: Annotated[int, Query(ge=1, le=answers.MAX_DEPTH)] = 3,
) -> answers.Selection:
    if not catalog.catalog_of(_available(history)).is_visible(namespace, name, user):
        raise HTTPException(404, "There is no such dataset.")
    return answers.Selection(DatasetName(namespace, name), partition or None, column or None, depth)


Selected = Annotated[answers.Selection, Depends(_selected)]


# If the full answer takes long, the page also asks for a quick answer, which does not tell which
# partitions are stale or due.
def _partitions(
    wanted: Selected, user: User, history: RequestHistory, *, quick: bool = False
) -> dict[str, Any]:
    return answers.partition_states(wanted.dataset, _available(history), user, is_quick=quick)


def _graph(wanted: Selected, user: User, history: RequestHistory) -> dict[str, Any]:
    return _answer_or_404(answers.partition_graph, wanted, history, user)


# A plan for some partitions gets spans of their names, each from a name in `first` to the name in
# `last` that has the same place: the page knows which dates are chosen, and its names are sorted.
def _plan(
    wanted: Selected, user: User, history: RequestHistory, first: _Texts = (), last: _Texts = ()
) -> dict[str, Any]:
    if len(first) != len(last):
        raise HTTPException(422, "Each span needs both of its ends: first and last.")
    if first:
        spans = tuple(zip(first, last, strict=True))
        return answers.refresh_plan(wanted.dataset, spans, _available(history), user)
    return _answer_or_404(answers.rerun_plans, wanted, history, user)


def _columns(user: User, history: RequestHistory, q: _Text = "") -> dict[str, Any]:
    return catalog.search_columns(q, _available(history), user)


def _column_graph(wanted: Selected, user: User, history: RequestHistory) -> dict[str, Any]:
    return _answer_or_404(answers.column_graph, wanted, history, user)


def _changes(wanted: Selected, user: User, history: RequestHistory) -> dict[str, Any]:
    return answers.run_changes(wanted, _available(history), user)


def _answer_or_404(
    question: Any, wanted: answers.Selection, history: RequestHistory, user: User
) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = question(wanted, _available(history), user)
    except LimitError:
        raise
    except SparkLineageError:
        # The error's message can name partitions or columns that this user may not see.
        raise HTTPException(404, "There is no such partition or column.") from None
    return answer
