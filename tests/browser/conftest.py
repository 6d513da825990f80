"""A real browser on real Airflows: `airflow standalone`, where a task runs, and an API server.

The API server's database has runs of the operator; its auth manager denies a user one of its
DAGs. `airflow standalone` takes no other auth manager than its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.parse
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import expect

from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.plugins import page as page_files
from tests.browser.airflow_double import FakeAirflow
from tests.browser.api import Api
from tests.browser.auth_manager import DENIED_DAG, DENIED_USER
from tests.browser.dag_runs import RESULT, SHOWN_DAG
from tests.browser.serving import api_server, find_chromium
from tests.browser.serving import chromium as started_chromium
from tests.browser.standalone import Live
from tests.standalone import START_TIMEOUT_S

ADMIN, READER = "admin", "reader"
PASSWORDS = {ADMIN: "a", READER: "r", DENIED_USER: "v"}
VIEWPORT = {"width": 1280, "height": 900}
# Of a page of Airflow, a megabyte of scripts, on a machine that has other work.
LOAD_TIMEOUT_MS = 120_000
expect.set_options(timeout=60_000)


def pytest_collection_modifyitems(items):
    """Mark what is in this folder, and nothing else."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.airflow)
            # Airflow's database connections outlive a test; it forks to send events.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"))


@pytest.fixture(scope="package")
def chromium():
    """Start Debian's Chromium, once for all tests of this folder.

    It ends with them: processes that Airflow forks in later tests would keep the pipes of its
    driver open, and the driver waits for their end.
    """
    found = find_chromium()
    if found is None:
        pytest.skip("There is no Chromium on the PATH; on Debian: apt install chromium")
    with started_chromium(found) as browser:
        yield browser


@pytest.fixture
def new_page(chromium):
    """Open pages that must not complain: what their console reports is an error of the test."""
    opened = []

    def new(context=None):
        page = (context or chromium).new_page(**({} if context else {"viewport": VIEWPORT}))
        complaints = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None,
        )
        opened.append((page, complaints))
        return page

    yield new
    for page, complaints in opened:
        page.close()
        assert complaints == []


@pytest.fixture
def show(new_page, tmp_path):
    """Open events as one file."""

    def open_file(*events):
        file = tmp_path / "lineage.html"
        file.write_text(page_files.self_contained(events), encoding="utf-8")
        page = new_page()
        page.goto(file.as_uri())
        # Its script unpacks the events, and draws, when the file has been loaded.
        expect(page.locator("main > *").first).to_be_visible()
        return page

    return open_file


@pytest.fixture
def airflow(new_page):
    """Open the tab in a page whose Airflow is played."""
    fake = FakeAirflow(new_page())
    yield fake
    fake.let_go(*fake.withheld)


class Server(Api):
    """A running API server, and what its database has."""

    def __init__(self, url: str, archive: Archive, run_ids: dict[str, str]) -> None:
        super().__init__(url, PASSWORDS)
        self.archive = archive
        self.run_ids = run_ids

    def lineage(self, task_id: str, dag_id: str = SHOWN_DAG, **query) -> str:
        """Path of the lineage of a task instance."""
        query = {"run_id": self.run_ids[dag_id], "task_id": task_id, **query}
        parameters = "&".join(f"{k}={urllib.parse.quote(str(v))}" for k, v in query.items())
        return f"/sparklineage/api/dags/{dag_id}/lineage?{parameters}"

    def tab(self, task_id: str, dag_id: str = SHOWN_DAG) -> str:
        """URL of the tab on a task instance."""
        run_id = urllib.parse.quote(self.run_ids[dag_id])
        return f"{self.url}/dags/{dag_id}/runs/{run_id}/tasks/{task_id}/plugin/spark-lineage"


@pytest.fixture(scope="package")
def archive(tmp_path_factory):
    return Archive(f"file://{tmp_path_factory.mktemp('browser')}/archive")


@pytest.fixture(scope="package")
def environment(archive):
    """Name the Airflow of these tests, for processes of their own."""
    return os.environ | {
        "AIRFLOW__SPARKLINEAGE__ARCHIVE_URL": archive.url,
        "AIRFLOW__SPARKLINEAGE__HISTORY_URL": f"{archive.url}-history",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }


@pytest.fixture(scope="package")
def run_ids(environment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark-submit")
    command = [sys.executable, "-m", "tests.browser.dag_runs", str(folder)]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    runs = json.loads((folder / RESULT).read_text())
    assert {dag: state for dag, (_, state) in runs.items()} == {
        SHOWN_DAG: "success",
        DENIED_DAG: "success",
    }
    return {dag: run_id for dag, (run_id, _) in runs.items()}


@pytest.fixture(scope="package")
def server(run_ids, environment, archive, tmp_path_factory):
    """Start an API server on the database of those runs."""
    folder = tmp_path_factory.mktemp("server")
    passwords = folder / "passwords.json"
    passwords.write_text(json.dumps(PASSWORDS))
    users = {ADMIN: "admin", READER: "viewer", DENIED_USER: "viewer"}
    roles = ",".join(f"{user}:{role}" for user, role in users.items())
    environment = environment | {
        "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of this test that is long enough for HS512 " * 2,
        "AIRFLOW__CORE__AUTH_MANAGER": "tests.browser.auth_manager.OneDagDenied",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": roles,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "flights",  # that of the recorded month
        # Tests build the history, or take it away.
        "AIRFLOW__SPARKLINEAGE__HISTORY_MERGED_BY": "command",
        "AIRFLOW__SPARKLINEAGE__WEB_URL": "http://marquez.example:3000",
    }
    with api_server(environment, folder / "log") as url:
        yield Server(url, archive, run_ids)


@pytest.fixture(scope="package")
def started_standalone(tmp_path_factory):
    """Start `airflow standalone`, and end it."""
    started = Live(tmp_path_factory.mktemp("standalone"), {ADMIN: PASSWORDS[ADMIN]})
    try:
        yield started
    finally:
        started.end()


@pytest.fixture(scope="package")
def standalone(started_standalone):
    """Wait for `airflow standalone`, and let its DAG run."""
    running = started_standalone
    running.await_answer()
    running.begin(ADMIN, START_TIMEOUT_S)
    return running


@pytest.fixture(scope="package")
def session(chromium, server):
    """Log in, once for each user; gives the browser's context to open pages in."""
    return cache(lambda user: logged_in(chromium, server.url, user))


@pytest.fixture(scope="package")
def standalone_session(chromium, standalone):
    """Log in to `airflow standalone`."""
    return logged_in(chromium, standalone.url, ADMIN)


def logged_in(chromium, url, user):
    """Log in as a person does."""
    context = chromium.new_context(viewport=VIEWPORT)
    page = context.new_page()
    page.goto(f"{url}/auth/login")
    page.get_by_label("Username").fill(user)
    page.get_by_label("Password").fill(PASSWORDS[user])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/auth/" not in url, timeout=LOAD_TIMEOUT_MS)
    page.close()
    return context
