"""Fixtures that all tests share; where recorded events and the specification are."""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import shutil
import sys
import tempfile
from copy import deepcopy
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from airflow_provider_sparklineage.event.document import Header
from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.application.accumulation import (
    SparkApplication,
    accumulate,
)
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.spark.capture.event_files import EventFiles, open_bundle
from tests import record_events
from tests.spark import submissions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.lineage.merge import TaskLineage

# Many laws, each tried on fewer examples than hypothesis would: the unit tests have half a minute.
# No deadline, because a busy machine is no defect. `make test-matrix` takes the thorough profile.
settings.register_profile("quick", max_examples=12, deadline=None)
settings.register_profile("thorough", max_examples=200, deadline=None)
settings.load_profile("quick")

# Airflow reads its configuration when first imported: before any test module, every run of its own.
_HOME = Path(tempfile.mkdtemp(prefix="sparklineage-tests-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
AIRFLOW_EVENTS = _HOME / "openlineage.ndjson"
os.environ.update(
    {
        "AIRFLOW_HOME": str(_HOME / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(_HOME / "dags"),
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "tests",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
            {"type": "file", "log_file_path": str(AIRFLOW_EVENTS), "append": True}
        ),
        "AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION": str(_HOME / "captures"),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # A driver that lives for seconds spends half of its time on compiling what it runs once.
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
)

# The environments of `make test-matrix` that are there for Spark have no Airflow.
_OF_AIRFLOW = (
    *(
        "operators",
        "adoption",
        "faults",
        "dag_runs",
        "integration",
        "browser",
        "cluster",
        "kubernetes",
        "services",
    ),
    "history/test_clearing.py",
    "history/test_example_build.py",
    "spark/test_jar_application.py",
    "spark/test_pipelines.py",
    "spark/test_provider_operators.py",
    "spark/test_pyspark_tasks.py",
)
# Partitioned assets have rollups from Airflow 3.3 on.
_OF_MAPPERS = ("operators/test_schedule.py", "operators/test_schedule_history.py")


def _ignored() -> list[str]:
    found = find_spec("airflow")
    if found is None:
        return [*_OF_AIRFLOW]
    folders = map(Path, found.submodule_search_locations or ())
    windows = (one / "partition_mappers" / "window.py" for one in folders)
    return [] if any(file.exists() for file in windows) else [*_OF_MAPPERS]


collect_ignore = _ignored()

GOLDEN = Path(__file__).parent / "golden"
HEADER = Header(
    "00000000-0000-7000-8000-000000000000", "airflow", "shop.revenue", "2026-01-01T00:00:00+00:00"
)
"""Of an event that is made of lineage alone."""


def golden(case: str, spark: str = "4.0") -> Path:
    """Path of the recorded events of a case."""
    return GOLDEN / f"spark-{spark}" / f"{case}.ndjson"


SPARKS = sorted(folder.name.removeprefix("spark-") for folder in GOLDEN.glob("spark-*"))
RECORDED = [
    (spark, file.name.partition(".")[0])
    for spark in SPARKS
    for file in sorted((GOLDEN / f"spark-{spark}").glob("*.ndjson"))
]
"""Every recorded case, as pairs of Spark and application."""
OBSERVED = [
    (s, case)
    for s, case in RECORDED
    if (golden(case, s).parent / "observed" / f"{case}.ndjson").exists()
]
"""Those of them with what the observer saw."""


def long_after(count: int, cases: Iterable[Any]) -> list[Any]:
    """Leave cases to ``make test-all``, but for the first: each takes seconds to show the same."""
    given = [case if isinstance(case, tuple) else (case,) for case in cases]
    given = [case if hasattr(case, "marks") else pytest.param(*case) for case in given]
    further = (case._replace(marks=(*case.marks, pytest.mark.long)) for case in given[count:])
    return [*given[:count], *further]


OF_ONE_SPARK = [
    pytest.param(s, case, marks=[] if s == "4.0" else [pytest.mark.long]) for s, case in RECORDED
]
"""Every recorded case, for what comes after the lineage, where its Spark makes no difference."""


class Recorded:
    """A recorded case on its way to the merged event, one step further with each property.

    Each step is made once for all tests. Its values never change; each test gets its own event.
    """

    def __init__(self, case: str, spark: str = "4.0") -> None:
        self.spark = spark
        self.path = golden(case, spark)

    @cached_property
    def application(self) -> SparkApplication:
        with open_bundle([str(self.path)]) as bundle:
            return accumulate(bundle.events(), bundle.manifest.application_run_id)

    @cached_property
    def _merged(self) -> tuple[TaskLineage, dict[str, Any]]:
        with open_bundle([str(self.path)]) as bundle:
            lineage = task_lineage(bundle)
            return lineage, merged_event(bundle, lineage)

    @property
    def lineage(self) -> TaskLineage:
        return self._merged[0]

    @property
    def event(self) -> dict[str, Any]:
        return deepcopy(self._merged[1])

    @cached_property
    def observed(self) -> TaskLineage:
        """The lineage with what the observer saw in the same run."""
        return task_lineage(self.bundle(is_observed=True))

    def bundle(self, *, is_observed: bool = False) -> EventFiles:
        """Give the recorded events, with what the observer saw if that is asked for."""
        files = _ObservedFiles if is_observed else EventFiles
        with open_bundle([str(self.path)]) as bundle:
            return files(None, bundle.manifest, files=(self.path,))


class _ObservedFiles(EventFiles):
    """Recorded events with the observations next to them."""

    @property
    def observations_path(self) -> Path:
        [file] = self.files
        return file.parent / "observed" / file.name


# Each process that runs their tests starts an Airflow, and a browser, or makes a database.
_OF_ONE_PROCESS = ("tests/browser/", "tests/dag_runs/")
# Each takes minutes, and shares nothing with the others.
_OF_ANY_PROCESS = "tests/spark/test_truth.py::test_of_each_job"


class _ByFileOrFolder(LoadFileScheduling):
    """Gives the tests of a file to one process, and all files of some folders to one process."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(_OF_ANY_PROCESS):
            return nodeid
        folder = next((f for f in _OF_ONE_PROCESS if nodeid.startswith(f)), None)
        return folder or super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Share what a folder's tests have in common, where `--dist loadfile` is chosen."""
    return _ByFileOrFolder(config, log) if config.getvalue("dist") == "loadfile" else None


_KUBERNETES = Path(__file__).parent / "kubernetes"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no Airflow where its tests are deselected anyway: importing it takes seconds.

    What has to build a Kubernetes first is run only where it is asked for.
    """
    deselected = config.option.markexpr
    if collection_path == _KUBERNETES and "kubernetes" not in deselected:
        return True
    is_browser = collection_path.name == "browser"
    if is_browser and "not browser" in deselected:
        return True
    is_airflow = collection_path.name in _OF_AIRFLOW
    return True if is_airflow and "not airflow" in deselected else None


@pytest.fixture(scope="session")
def recorded():
    """Open a recorded case: ``recorded("staging_chain").lineage``."""
    opened = cache(Recorded)
    return lambda case, spark="4.0": opened(case, spark)


# --- a real Spark ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def spark():
    """Find the Spark of this environment."""
    return record_events.Spark.of(Path(sys.executable).with_name("spark-submit"))


@pytest.fixture(scope="session")
def prepared(spark, tmp_path_factory):
    """Lay out what applications start from, once for all workers; give the folder of it all.

    It fetches the connectors as well, which two of Spark's resolvers must not do at once.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    work = shared / "prepared"
    with (shared / "prepared.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not work.exists():
            work.mkdir()
            application = record_events.APPLICATIONS / "prepare_lakes.py"
            connectors = submissions.available(spark)
            submissions.submit(spark, application, work, observe=False, connectors=connectors)
            (work / "scratch").rename(work / "prepared")
    assert (work / "prepared").exists(), "another worker has failed to"
    return work


@pytest.fixture(scope="session")
def orders_lake(prepared):
    """Prepare the lake of the recorded cases; copy it before writing to it."""
    return prepared / "lake" / "recorded"
