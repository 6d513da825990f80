"""The user of a request, as Airflow knows one, and what Airflow allows that user."""

from __future__ import annotations

# FastAPI reads annotations when it makes the routes, so they cannot be imported for types only.
from typing import TYPE_CHECKING, Annotated

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep  # noqa: TC002
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException, Request
from sqlalchemy import select

from airflow_provider_sparklineage.plugins.history.visibility import Visibility

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod


def visibility(request: Request, user: GetUserDep, session: SessionDep) -> Visibility:
    """Give what the user of a request may see; 401 without a session."""

    def may(method: ResourceMethod, entity: DagAccessEntity) -> Callable[[str], bool]:
        def ask(dag_id: str) -> bool:
            try:
                # Airflow's own check, which knows about teams.
                requires_access_dag(method, entity, dag_id)(request, user)
            except HTTPException:
                return False
            return True

        return ask

    return Visibility(
        may("GET", DagAccessEntity.XCOM),
        may("PUT", DagAccessEntity.TASK_INSTANCE),
        lambda: frozenset(session.scalars(select(DagModel.dag_id))),
    )


User = Annotated[Visibility, Depends(visibility)]
