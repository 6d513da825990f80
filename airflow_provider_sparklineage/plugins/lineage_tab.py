"""The plugin: a tab and a page "Spark lineage", and what they ask the API server for.

Every Airflow process imports every plugin, workers before each task. So nothing is imported here
that costs time: the web application is made when it is first asked for something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.plugins_manager import AirflowPlugin

from airflow_provider_sparklineage.plugins.macros import MACROS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from fastapi import FastAPI

    Message = MutableMapping[str, Any]

PREFIX = "/sparklineage"


class LazyApp:
    """An ASGI application that is made when the first request comes."""

    def __init__(self) -> None:
        self._app: FastAPI | None = None

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Hand a request on."""
        if self._app is None:
            from airflow_provider_sparklineage.plugins.app import make_app

            self._app = make_app()
        await self._app(scope, receive, send)


def adopting() -> list[Any]:
    """Give the listener that adopts tasks, where tasks are adopted.

    Nowhere else, because Airflow imports no DAG with ``end_from_trigger`` where anybody listens.
    """
    from airflow_provider_sparklineage.operators.adoption import policy

    if policy.is_off():
        return []
    from airflow_provider_sparklineage.operators.adoption import listener

    return [listener]


class SparkLineagePlugin(AirflowPlugin):
    """The lineage of a task instance, in Airflow's own pages."""

    name = "sparklineage"
    macros: list[Any] = MACROS
    fastapi_apps: list[Any] = [  # noqa: RUF012  (so Airflow's class has it)
        {"app": LazyApp(), "url_prefix": PREFIX, "name": "Spark lineage"}
    ]
    listeners: list[Any] = adopting()
    # Not an external view: those are shown in an iframe, which may not open links.
    react_apps: list[Any] = [  # noqa: RUF012
        {
            "name": "Spark lineage",
            # Without a slash in front, because Airflow may be served below a path.
            "bundle_url": f"{PREFIX[1:]}/page/tab.js",
            "destination": "task_instance",
            "url_route": "spark-lineage",
        },
        {
            # Airflow keeps one component for each name: the same module shows either.
            "name": "Spark lineage",
            "bundle_url": f"{PREFIX[1:]}/page/tab.js",
            "destination": "nav",
            "url_route": "spark-lineage-history",
        },
    ]
