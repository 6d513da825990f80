"""What an answer of a backend says about the way to it, whichever backend it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_sparklineage.event.backends.client import Problem
from airflow_provider_sparklineage.settings.checks import Check, Status

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.backends.client import Answer, Endpoint


def failed(problem: Problem, name: str) -> Check:
    """Make a check of what is wrong."""
    return Check(name, Status.FAILED, problem.message, problem.fix)


def unusable(endpoint: Endpoint, answer: Answer, url: str) -> Problem | None:
    """Recognise answers that do not come from the backend itself."""
    code, place = answer.status, endpoint.place
    if 300 <= code < 400:
        return Problem(
            f"{url} sends elsewhere, to {_host_of(answer.location)}.",
            f"Give the URL without a detour in {place.of('host', 'port', 'schema')}; if that is a "
            f"page for logging in, the API key in {place.key} is missing or wrong.",
        )
    if code in (401, 403, 407):
        return Problem(
            f"{url} lets nobody in without a valid key (it answers {code}).",
            f"Put the API key into {place.key}.",
        )
    if code in (502, 503, 504):
        return Problem(
            f"What stands before the backend at {url} does not reach it (it answers {code}).",
            "Start the backend, or look at the configuration of that proxy.",
        )
    return None


def is_html(answer: Answer) -> bool:
    """Whether it is a web page, which no API has."""
    return "html" in answer.content_type


def document_of(answer: Answer) -> dict[str, Any]:
    """Give the JSON object in it; an empty one if there is none."""
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _host_of(location: str) -> str:
    """Name where an answer sends to; a path and a query may hold a session."""
    try:
        parts = urlsplit(location)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    return f"{parts.scheme}://{host[:100]}" if host else "another path"
