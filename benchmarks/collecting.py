"""How long collecting takes what drivers in a cluster delivered to HDFS: a real one, by WebHDFS.

By the clock, because that is what a task waits, and the cluster's processes are not this one. It is
compared with copying the same files on the disk that they end on.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.budget import UNLIMITED
from airflow_provider_sparklineage.model.terms import EVENTS, MANIFEST
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, encoded
from airflow_provider_sparklineage.spark.capture.remote_bundles import fetched
from airflow_provider_sparklineage.storage.objects import Objects
from benchmarks.amplification import ACTIONS, amplified, run_id
from benchmarks.results import Result
from tests import maven
from tests.cluster import mini_cluster
from tests.cluster.shared_service import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = 5
SEGMENTS = 300
GOAL_S = 5
_ACTIONS = 1100
_USER = "benchmark"
_NAME = "collect 50 MB from HDFS"


def measured() -> Iterator[Result]:
    """Measure a try whose driver has written for hours."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            cluster = mini_cluster.start(Path(folder), yarn=False)
        except (ServiceError, maven.JarsError) as error:
            yield Result(_NAME, None, GOAL_S, f"there is no HDFS: {error}", " s")
            return
        try:
            cluster.make_folder("/lineage", _USER)
            yield from _collecting(cluster.webhdfs)
        finally:
            cluster.stop()


def _collecting(address: str) -> Iterator[Result]:
    host, _, port = address.partition(":")
    connection = {"conn_type": "webhdfs", "host": host, "port": int(port), "login": _USER}
    os.environ["AIRFLOW_CONN_BENCHMARK"] = json.dumps(connection)
    url = "hdfs://benchmark@namenode/lineage/try"
    lines = list(amplified(_ACTIONS // ACTIONS, 100))
    of_each = ceil(len(lines) / SEGMENTS)
    segments = [b"".join(lines[at : at + of_each]) for at in range(0, len(lines), of_each)]
    _deliver(Objects(url), segments)
    collect_s, copy_s = _in_turns(url, segments)
    size = sum(map(len, segments)) / 1e6
    figures = (
        f"{size:.1f} MB in {len(segments)} segments in {collect_s:.2f} s, the same files copied on "
        f"the disk in {copy_s:.2f} s"
    )
    yield Result(_NAME, collect_s, GOAL_S, figures, " s")
    yield Result(f"{_NAME} / copy on the disk", collect_s / copy_s, None, figures)


def _deliver(store: Objects, segments: list[bytes]) -> None:
    run = {"application_run_id": run_id()}
    attempt = "00001-1700000000000-0123abcd"
    store.write(MANIFEST, encoded(Manifest(application_run_id=run_id())))
    start = {**run, "application_id": "application_1", "started_ms": 1_700_000_000_000}
    store.write(f"{attempt}/start.json", json.dumps(start).encode())
    with ThreadPoolExecutor(8) as pool:
        for number, segment in enumerate(segments, 1):
            pool.submit(store.write, f"{attempt}/events-{number:05d}.ndjson", segment)
    end = {**run, "segments": {"events": len(segments), "observations": 0}}
    store.write(f"{attempt}/end.json", json.dumps(end).encode())


def _in_turns(url: str, segments: list[bytes]) -> tuple[float, float]:
    """Give the seconds of the quickest run of collecting, and of copying the same files here."""
    collect, copy = [], []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as name:
            into, files = Path(name, "into"), Path(name, "files")
            into.mkdir()
            files.mkdir()
            for number, segment in enumerate(segments):
                (files / str(number)).write_bytes(segment)
            begun = time.perf_counter()
            _, delivered = fetched(url, into, UNLIMITED)
            collect.append(time.perf_counter() - begun)
            if not delivered.has_ended or delivered.degradations:
                raise AssertionError(delivered)
            if (into / EVENTS).read_bytes() != b"".join(segments):
                msg = "other events were collected than delivered"
                raise AssertionError(msg)
            begun = time.perf_counter()
            shutil.copytree(files, Path(name, "copies"))
            copy.append(time.perf_counter() - begun)
    return min(collect), min(copy)
