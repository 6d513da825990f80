"""The plugin: the tab "Spark lineage", the page "Lineage", their endpoints, and the macros.

Every Airflow process imports every plugin, and a worker does so before each task. So no module that
costs time is imported here: the web application is made when its first request comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakSet

from airflow.plugins_manager import AirflowPlugin

from airflow_provider_sparklineage.plugins.macros import MACROS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from fastapi import FastAPI

    Message = MutableMapping[str, Any]

PREFIX = "/sparklineage"


def _icon(color: str) -> str:
    """Draw the icon of the page, two tables that are made of a third, as a URL of an image.

    The URL has the image in it, so that the navigation of each page of Airflow asks for no file.
    Airflow colours no image, and the entry of the page that is open is dark blue: the lines have a
    white edge, or dark ones could not be seen there.
    """
    tables = "M3 9h6v6H3zM15 3h6v6h-6zM15 15h6v6h-6zM9 12h3M12 6v12M12 6h3M12 18h3"
    return (
        "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' "
        f"fill='none'><path d='{tables}' stroke='white' stroke-width='5'/>"
        f"<path d='{tables}' stroke='{color}' stroke-width='2'/></svg>"
    ).replace("#", "%23")


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
        """Pass a request on to the application, which is made for the first request."""
        if self._app is None:
            from airflow_provider_sparklineage.plugins.app import make_app

            self._app = make_app()
        await self._app(scope, receive, send)


def adopting() -> list[Any]:
    """List the listener that adopts tasks; [] if adoption is off.

    If adoption is off the listener is left out, because Airflow refuses to import a DAG with
    ``end_from_trigger`` as soon as there is any listener.
    """
    from airflow_provider_sparklineage.operators.adoption import policy

    if policy.is_off():
        return []
    from airflow_provider_sparklineage.operators.adoption import listener

    return [listener]


class SparkLineagePlugin(AirflowPlugin):
    """The tab and the page in Airflow, the macros, and the listener that adopts tasks."""

    name = "sparklineage"
    macros: list[Any] = MACROS
    fastapi_apps: list[Any] = [  # noqa: RUF012  (so Airflow's class has it)
        {"app": LazyApp(), "url_prefix": PREFIX, "name": "Spark lineage"}
    ]
    listeners: list[Any] = adopting()
    # React apps and not external views: those are shown in an iframe, which may not open links.
    react_apps: list[Any] = [  # noqa: RUF012
        {
            "name": "Spark lineage",
            # Without a slash in front, because Airflow may be served below a path.
            "bundle_url": f"{PREFIX[1:]}/page/tab.js",
            "destination": "task_instance",
            "url_route": "spark-lineage",
        },
        {
            # A name of one short word, because the navigation is narrow.
            "name": "Lineage",
            "bundle_url": f"{PREFIX[1:]}/page/tab.js",
            "destination": "nav",
            "url_route": "spark-lineage-history",
            "icon": _icon("#3e5873"),
            "icon_dark_mode": _icon("#a3afbe"),
        },
    ]

    # Airflow finds the plugin in each place of the path where this package is installed: an
    # `*.egg-info` in a clone is a second one. Airflow's tasks load no further plugin when they meet
    # a name again, and so would lose the listener of Airflow's OpenLineage provider. All plugins of
    # a load are made before the first of them is loaded.
    _made: ClassVar[WeakSet[SparkLineagePlugin]] = WeakSet()

    def __init__(self) -> None:
        """Make the plugin; if one is made again for the same load, it is empty, of another name."""
        self._made.add(self)
        number = len(self._made)
        if number > 1:
            self.name = f"{self.name} {number}"
            self.macros, self.fastapi_apps, self.listeners, self.react_apps = [], [], [], []

    @classmethod
    def on_load(cls, *args: Any, **kwargs: Any) -> None:
        """Let the next plugin that is made be the first one of another load."""
        super().on_load(*args, **kwargs)  # type: ignore[no-untyped-call]
        cls._made.clear()
