"""Each picture of ``docs/``, and how it is made."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.plugins import page as page_files
from tests.browser.events import wide_event
from tests.pictures import demo, history, marquez, terminal
from tests.pictures.airflow import await_other_runs, lineage, tabs
from tests.pictures.screen import take, take_window

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.pictures.studio import Studio

    Make = Callable[[Studio, Path], None]

PICTURES: dict[str, Make] = {}
"""How to make each file; in this order, as the last ones see the Airflow with one day more."""


class SkippedError(Exception):
    """Raised with the reason why a picture stays as it is."""


def picture(file: str) -> Callable[[Make], Make]:
    """Name the file that a function makes."""

    def register(make: Make) -> Make:
        PICTURES[file] = make
        return make

    return register


# --- without a browser ----------------------------------------------------------------------------


@picture("flow.svg")
def flow(_studio: Studio, file: Path) -> None:
    """Draw the stations of a task's lineage."""
    dot = shutil.which("dot")
    if dot is None:
        reason = "there is no dot on the PATH; on Debian: apt install graphviz"
        raise SkippedError(reason)
    subprocess.run([dot, "-Tsvg", file.with_suffix(".dot"), "-o", file], check=True)


@picture("daily_delays.svg")
def daily_delays(_studio: Studio, file: Path) -> None:
    """Draw what ``sparklineage show`` prints."""
    terminal.draw_show(file, "daily_delays")


# --- Airflow --------------------------------------------------------------------------------------


@picture("lineage_page.png")
def lineage_page(studio: Studio, file: Path) -> None:
    """Show the tab in Airflow, with a column chosen."""
    page = studio.airflow.tab("daily_delays", demo.DAY)
    await_other_runs(page)
    written = lineage(page).get_by_role("listbox", name="Columns written")
    written.get_by_role("option", name="avg_visibility").click()
    page.mouse.move(0, 0)
    take_window(file, page, lineage(page))


@picture("partition_strip.png")
def partition_strip(studio: Studio, file: Path) -> None:
    """Show which dates runs have read and written."""
    page = studio.airflow.tab("weekly_report", demo.DAY)
    await_other_runs(page)
    take(file, lineage(page).locator(".flow"), lineage(page).locator(".legend"))


@picture("wrong_partition.png")
def wrong_partition(studio: Studio, file: Path) -> None:
    """Show a task that has written another day than it should have."""
    page = studio.airflow.tab("carrier_delays", demo.DAY, "example_catch_wrong_partition")
    await_other_runs(page)
    take(file, lineage(page).locator(".flow"), lineage(page).locator(".partitions"))


@picture("connection_form.png")
def connection_form(studio: Studio, file: Path) -> None:
    """Show the form of a connection."""
    take(file, studio.airflow.connection_form(), height=1100)


@picture("running_task.png")
def running_task(studio: Studio, file: Path) -> None:
    """Show what is expected of a task that runs."""
    with demo.next_day():
        page = studio.airflow.tab_while_running("daily_delays")
        for what in (".partitions", ".last .card"):
            lineage(page).locator(what).first.wait_for()
        take(file, tabs(page), lineage(page), height=950)


# --- the history ----------------------------------------------------------------------------------


@picture("history_health.png")
def history_health(studio: Studio, file: Path) -> None:
    """Take the page's first view in Airflow, with the plan over all datasets."""
    page = studio.airflow.page()
    page.get_by_role("button", name="stale 8", exact=True).wait_for()
    page.get_by_role("button", name="What to run again").click()
    history.part(page, ".plan .record.heading").wait_for()
    history.await_states(page)
    take_window(file, page, history.part(page, ".plan"))


@picture("history_columns.png")
def history_columns(studio: Studio, file: Path) -> None:
    """Take the columns that are made of a column of a source."""
    page = studio.history.page("flights", column="dep_delay", view="Columns")
    history.part(page, ".react-flow__edge").wait_for(state="attached")
    take(file, history.part(page, ".dataset h2"), history.part(page, ".columnpicture"))


@picture("history_calendar.png")
def history_calendar(studio: Studio, file: Path) -> None:
    """Show the partitions of a table: some were made of a day that was written anew."""
    page = studio.history.page("weekly_report")
    take(file, history.part(page, "header"), history.part(page, ".dataset"))


@picture("history_graph.png")
def history_graph(studio: Studio, file: Path) -> None:
    """Show what a column of a stale day was made of."""
    day = "flight_date=2013-01-15"
    page = studio.history.page("daily_delays", partition=day, column="avg_visibility")
    history.part(page, ".react-flow__node").wait_for()
    take(file, history.part(page, ".partition"))


@picture("history_plan.png")
def history_plan(studio: Studio, file: Path) -> None:
    """Show what to run again after a day was written anew."""
    page = studio.history.page("flights", partition="flight_date=2013-01-15")
    page.get_by_role("button", name="Run again").click()
    history.part(page, ".plan .record.heading").wait_for()
    take(file, history.part(page, ".partition"))


@picture("history_changes.png")
def history_changes(studio: Studio, file: Path) -> None:
    """Show what the task of a table did otherwise than in the run before."""
    page = studio.history.page("flights")
    page.get_by_text("What changed from run to run").click()
    history.part(page, ".changes .record[data-index]").wait_for()
    take(file, history.part(page, ".dataset"))


# --- the page as a file ---------------------------------------------------------------------------


@picture("wide_page.png")
def wide_page(studio: Studio, file: Path) -> None:
    """Show a job of many tables."""
    page = studio.page_of(page_files.self_contained([wide_event(300, 200)]))
    take(file, page.locator("main"), height=1100)


# --- Marquez --------------------------------------------------------------------------------------


@picture("marquez_landing.png")
def marquez_landing(studio: Studio, file: Path) -> None:
    """Show what is open where the link of a task leads."""
    marquez.take_drawer(file, _marquez(studio).job("daily_delays"))


@picture("marquez_job.png")
def marquez_job(studio: Studio, file: Path) -> None:
    """Show a task between its tables."""
    page = _marquez(studio).job("daily_delays")
    page.keyboard.press("Escape")
    marquez.take_graph(file, page)


@picture("marquez_dataset.png")
def marquez_dataset(studio: Studio, file: Path) -> None:
    """Show the page of a table that was written, with what is in it now."""
    marquez.take_drawer(file, _marquez(studio).dataset("daily_delays"))


@picture("marquez_columns.png")
def marquez_columns(studio: Studio, file: Path) -> None:
    """Show what a column is made of."""
    marquez.take_graph(file, _marquez(studio).columns("daily_delays", "avg_visibility"))


def _marquez(studio: Studio) -> marquez.Marquez:
    if not marquez.is_there():
        reason = f"{marquez.API_URL} and {marquez.WEB_URL} name no Marquez"
        raise SkippedError(reason)
    return studio.marquez
