"""The page's endpoints, below ``/sparklineage/api/history/``; 401 without a session of Airflow.

What a user may not see is left out of each answer (:mod:`.visibility`); a dataset that only runs
accessed that the user may not see is not there: 404. Nothing here changes anything: the page clears
task instances by Airflow's own API, with the user's own permission and in Airflow's own log.
"""

from __future__ import annotations

# FastAPI reads annotations when it makes the routes, so they cannot be imported for types only.
from collections.abc import Iterator  # noqa: TC003
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Response

from airflow_provider_sparklineage.model.exceptions import SparkLineageError
from airflow_provider_sparklineage.plugins.history import built, changes, graph, partitions, plans
from airflow_provider_sparklineage.plugins.history.access import User  # noqa: TC001
from airflow_provider_sparklineage.plugins.history.datasets import Catalog  # noqa: TC001
from airflow_provider_sparklineage.plugins.history.opened import Asked
from airflow_provider_sparklineage.plugins.history.store import UnavailableError, catalog_of, opened

_LONGEST = 4000  # of a name or a partition in a URL
_Text = Annotated[str, Query(max_length=_LONGEST)]
_FOR_EVER = "public, max-age=31536000, immutable"


def router() -> APIRouter:
    """Make the routes."""
    made = APIRouter()
    made.get("/history/{file}")(_file)
    api = APIRouter(prefix="/api/history", dependencies=[Depends(_uncached)])
    api.get("/datasets")(_datasets)
    api.get("/partitions")(_partitions)
    api.get("/graph")(_graph)
    api.get("/plan")(_plan)
    api.get("/changes")(_changes)
    made.include_router(api)
    return made


def _uncached(response: Response) -> None:
    # Another user at the same machine must not find it in the browser's cache.
    response.headers["Cache-Control"] = "no-store"


def _file(file: str) -> Response:
    if file not in built.files():
        raise HTTPException(404)
    kept = _FOR_EVER if built.is_of_one_content(file) else "no-cache"
    return Response(built.content(file), 200, {"Cache-Control": kept}, built.files()[file])


def _history() -> Iterator[Asked | UnavailableError]:
    try:
        with opened() as history:
            yield history
    except UnavailableError as why:
        yield why


# Without a user nothing is opened: dependencies are resolved in the order of the parameters.
History = Annotated[Asked | UnavailableError, Depends(_history)]


def _there(history: Asked | UnavailableError) -> Asked:
    if isinstance(history, UnavailableError):
        raise HTTPException(503, str(history))
    return history


def _datasets(user: User, history: History, q: _Text = "") -> dict[str, Any]:
    if isinstance(history, UnavailableError):
        why = {"message": str(history), "commands": history.commands}
        return {"unavailable": why, "built_at": None, "datasets": [], "count": 0}
    found = catalog_of(history).search(q, user)
    return {"unavailable": None, "built_at": history.built_at, **found}


def _wanted(
    user: User,
    history: History,
    namespace: _Text,
    name: _Text,
    partition: _Text = "",
    column: _Text = "",
    depth: Annotated[int, Query(ge=1, le=graph.MAX_DEPTH)] = 3,
) -> graph.Wanted:
    if not _catalog(history).is_visible(namespace, name, user):
        raise HTTPException(404, "There is no such dataset.")
    return graph.Wanted((namespace, name), partition or None, column or None, depth)


Wanted = Annotated[graph.Wanted, Depends(_wanted)]


def _catalog(history: Asked | UnavailableError) -> Catalog:
    return catalog_of(_there(history))


# The page asks for what is known at once when all of it takes long.
def _partitions(
    wanted: Wanted, user: User, history: History, *, quick: bool = False
) -> dict[str, Any]:
    return partitions.of(wanted.dataset, _there(history), user, is_quick=quick)


def _graph(wanted: Wanted, user: User, history: History) -> dict[str, Any]:
    return _answered(graph.of, wanted, history, user)


def _plan(wanted: Wanted, user: User, history: History) -> dict[str, Any]:
    return _answered(plans.of, wanted, history, user)


def _changes(wanted: Wanted, user: User, history: History) -> dict[str, Any]:
    return changes.of(wanted, _there(history), user)


def _answered(question: Any, wanted: graph.Wanted, history: History, user: User) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = question(wanted, _there(history), user)
    except SparkLineageError:
        # Its sentence says what there is, which may be more than this user may know.
        raise HTTPException(404, "There is no such partition or column.") from None
    return answer
