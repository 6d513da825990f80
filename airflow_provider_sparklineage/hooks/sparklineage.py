"""The hook of connections of type ``sparklineage``."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseHook

from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.model.exceptions import SparkLineageError
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.checks import Check, Status
from airflow_provider_sparklineage.settings.connection import CONN_TYPE, DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow_provider_sparklineage.settings.connection import LineageConnection


class SparkLineageHook(BaseHook):
    """
    Read a connection of type ``sparklineage``, and test it.

    The connection has the backend that shows lineage, and options for collecting lineage. Airflow's
    own OpenLineage provider sends the lineage; it reads its transport from this connection if
    ``[openlineage] config_conn_id`` names the connection.

    :param lineage_conn_id: id of the connection
    """

    conn_name_attr = "lineage_conn_id"
    default_conn_name = DEFAULT_CONN_ID
    conn_type = CONN_TYPE
    hook_name = "Spark Lineage"

    def __init__(self, lineage_conn_id: str = DEFAULT_CONN_ID, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.lineage_conn_id = lineage_conn_id

    @cached_property
    def connection(self) -> LineageConnection:
        """
        The content of the connection.

        :raise ConnectionFieldsError: if the connection is missing, is of another type, or has
            impossible fields
        """
        connection = sources.connection(self.lineage_conn_id)
        if connection is None:
            raise sources.missing(self.lineage_conn_id)
        return connection

    def get_conn(self) -> LineageConnection:
        """Give the content of the connection, as there is no server to connect to."""
        return self.connection

    def checks(self) -> list[Check]:
        """
        Check the API and the pages of the connection's backend, without storing anything there.

        :raise SparkLineageError: if the connection or a setting is impossible
        """
        from airflow_provider_sparklineage.event.backends import checks
        from airflow_provider_sparklineage.hooks.backend_checks import backend_checks, with_key

        settings = sources.for_settings(self.connection)
        resolved = resolution.resolve(*settings)
        web_place = resolution.place("web_url", *settings)
        endpoint = checks.endpoint_of(self.connection, resolved.web_url, web_place)
        transport = with_key(self.connection.transport or {}, self.connection.api_key)
        return backend_checks(endpoint, resolved.backend, transport, "the connection's extra")

    def test_connection(self) -> tuple[bool, str]:
        """
        Check whether the backend can be read and accepts events, for Airflow's connection test.

        Airflow tests the content of the form under a temporary id, in its API server. The test
        cannot see whether workers send lineage by this connection; the command ``doctor`` checks
        that.

        :return: whether no check failed, and a text for the user
        """
        try:
            checks = self.checks()
        except SparkLineageError as error:
            return False, str(error)
        if not checks:
            return (
                False,
                "Nothing can be tested: give the URL of the API, or a transport to one.",
            )
        failed = any(check.status is Status.FAILED for check in checks)
        wrong = [f"{c.message} {c.fix}" for c in checks if c.status is not Status.OK]
        texts = wrong or [check.message for check in checks]
        if not failed and self.connection.transport is None:
            texts.append(
                "For [openlineage] config_conn_id to name it, its extra needs "
                f'"transport": {self.connection.wanted_transport}.'
            )
        return not failed, " ".join(texts)
