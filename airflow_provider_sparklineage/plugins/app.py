"""What the tab asks for: its own files, and the lineage of a task instance.

Lineage is behind Airflow's session: 401 without one, 403 for a user who may not read the XComs of
the DAG. The files of the page contain nobody's data and need no session.
"""

from __future__ import annotations

# FastAPI reads annotations when it makes the routes, so they cannot be imported for types only.
from typing import Annotated, Any

import msgspec
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep  # noqa: TC002
from airflow.api_fastapi.core_api.security import requires_access_dag
from fastapi import Depends, FastAPI, HTTPException, Query, Response

from airflow_provider_sparklineage.plugins import page, partition_history, task_lineage
from airflow_provider_sparklineage.plugins.history import routes
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

_INTEGER = 2**31 - 1
"""The largest number that the columns of Airflow's database can store."""
_NO_INSTANCE = "There is no such task instance."


def make_app() -> FastAPI:
    """Make the application that Airflow's API server mounts."""
    # Without pages of its own, which would be public.
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.get("/page/{file}")(_file)
    readable = [Depends(requires_access_dag("GET", DagAccessEntity.XCOM))]
    app.get("/api/dags/{dag_id}/lineage", dependencies=readable)(_lineage)
    app.get("/api/dags/{dag_id}/state", dependencies=readable)(_state)
    app.get("/api/dags/{dag_id}/partitions", dependencies=readable)(_partitions)
    app.include_router(routes.router())
    return app


def _file(file: str) -> Response:
    if file not in page.FILES:
        raise HTTPException(404)
    # Asked for anew each time: files of two versions must not meet on one page.
    return Response(page.content(file), 200, {"Cache-Control": "no-cache"}, page.FILES[file])


def _wanted(
    dag_id: str,
    run_id: str,
    task_id: str,
    map_index: Annotated[int, Query(ge=-1, le=_INTEGER)] = -1,
) -> TaskIdentity:
    return TaskIdentity(dag_id, task_id, run_id, 0, map_index)


Wanted = Annotated[TaskIdentity, Depends(_wanted)]


def _lineage(
    wanted: Wanted,
    session: SessionDep,
    response: Response,
    try_number: Annotated[int | None, Query(ge=1, le=_INTEGER)] = None,
) -> dict[str, Any]:
    of_try = msgspec.structs.replace(wanted, try_number=try_number or 0)
    return _answer(response, task_lineage.of(of_try, session))


# What an open tab asks for while the task runs: it unpacks no XCom and asks no archive.
def _state(wanted: Wanted, session: SessionDep, response: Response) -> dict[str, Any]:
    return _answer(response, task_lineage.progress(wanted, session))


# What other runs accessed, which an open tab asks for when it has drawn this one.
def _partitions(wanted: Wanted, session: SessionDep, response: Response) -> dict[str, Any]:
    return _answer(response, task_lineage.history(wanted, session))


def _answer(
    response: Response,
    found: task_lineage.Answer | task_lineage.Progress | partition_history.History | None,
) -> dict[str, Any]:
    # Another user at the same machine must not find it in the browser's cache.
    response.headers["Cache-Control"] = "no-store"
    if found is None:
        raise HTTPException(404, _NO_INSTANCE)
    return found._asdict()
