"""Plain jobs, which show how the others are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.job import SECOND, Job

if TYPE_CHECKING:
    from tests.truth.job import Lake


class OneDay(Job):
    """A day is read, and appended to a table that its rows make."""

    reads = {"events": [SECOND]}
    writes = {"out": [SECOND]}
    columns = {"out": {"person": {"events.user"}, "dt": {"events.dt"}}}

    def run(self, lake: Lake) -> None:
        day = lake.read("events").where("dt = '2024-05-06'")
        lake.write(day.selectExpr("user AS person", "dt"), "out", "dt")
