"""What the doctor found: lines for people, a document for programs."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.settings.checks import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_provider_sparklineage.settings.checks import Check

_STYLES = {Status.OK: "green", Status.WARNING: "yellow", Status.FAILED: "bold red"}


def document(checks: Sequence[Check]) -> dict[str, Any]:
    """Give what ``--json`` prints; its schema is shipped as ``schemas/doctor.json``."""
    return {
        "status": str(worst(checks)),
        "checks": [
            {"name": c.name, "status": str(c.status), "message": c.message, "fix": c.fix}
            for c in checks
        ],
    }


def worst(checks: Iterable[Check]) -> Status:
    """Give the worst status of checks; ok if there are none."""
    order = [*Status]
    return max((check.status for check in checks), key=order.index, default=Status.OK)


def print_checks(checks: Sequence[Check], file: IO[str]) -> None:
    """Print a line for each check, with the fix at its end."""
    out = show.console(file)
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        style = _STYLES[check.status]
        status = f"[{style}]{check.status:7}[/{style}]"
        text = show.escape(" ".join(f"{check.message} {check.fix}".split()))
        out.print(f"{status}  {show.escape(check.name):{width}}  {text}", soft_wrap=True)
