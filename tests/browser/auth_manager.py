"""Airflow's simple auth manager, but for one user who may not see one DAG."""

from __future__ import annotations

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

DENIED_DAG = "lineage_denied"
DENIED_USER = "visitor"


class OneDagDenied(SimpleAuthManager):
    """Refuses what is of the DAG `lineage_denied` to the user `visitor`."""

    def is_authorized_dag(self, *, method, user, access_entity=None, details=None):
        if details and details.id == DENIED_DAG and user.username == DENIED_USER:
            return False
        return super().is_authorized_dag(
            method=method, user=user, access_entity=access_entity, details=details
        )
