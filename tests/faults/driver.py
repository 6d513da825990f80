"""The worker with a real Spark: what a job does in its driver, and to its driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults.bench import Bench

if TYPE_CHECKING:
    from tests.faults.rows import Run

OF_SPARK = "Spark's own temporary folders"
"""What a JVM that is killed leaves."""

_APPLICATION = """\
import os, sys, time
from pathlib import Path
{first}
from pyspark.sql import SparkSession

lake = sys.argv[1]
spark = SparkSession.builder.appName("report").getOrCreate()
days = spark.read.schema("id int, dt string").csv(lake + "/days.csv")
days.write.partitionBy("dt").parquet(lake + "/orders")
conf = spark.sparkContext.getConf()
observations = conf.get("spark.sparklineage.observations", "")
bundle = Path(observations).parent if observations else None
{between}
orders = spark.read.parquet(lake + "/orders").where("dt = '2024-05-02'")
orders.write.partitionBy("dt").parquet(lake + "/report")
{last}
"""


class Driver(Bench):
    """A worker whose spark-submit is Spark's own, with a job into which a fault puts code.

    The job writes two partitions of ``orders``, and one of ``report`` of what it reads of them.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, spark: Any) -> None:
        super().__init__(folder, monkeypatch)
        binaries = [str(Path(sys.executable).parent), os.environ["PATH"]]
        monkeypatch.setenv("PATH", os.pathsep.join(binaries))
        monkeypatch.delenv("SPARK_HOME")
        monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        self.set("listener_jar", spark.listener)
        self.code = {"first": "", "between": "", "last": ""}
        """What the job does before it makes its session, between its two writes, and at its end."""
        self.arguments = {"conf": {"spark.ui.enabled": "false", "spark.local.dir": str(self.tmp)}}
        self._application = folder / "report.py"
        self._runs = 0

    # --- what faults use --------------------------------------------------------------------------

    def small_disk(self, kilobytes: int = 512) -> None:
        """Give the capture location a disk of its own, with room for the start of a job."""
        self.captures.mkdir(mode=0o700)
        size = f"size={kilobytes}k,mode=700"
        command = ["mount", "-t", "tmpfs", "-o", size, "none", str(self.captures)]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip("only root may mount a small disk, and not everywhere")
        self.resources.callback(subprocess.run, ["umount", "-l", str(self.captures)], check=True)

    def python(self, option: str) -> None:
        """Let the driver's Python have an option."""
        wrapper = self.folder / "python"
        wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" {option} "$@"\n')
        wrapper.chmod(0o755)
        self.arguments["env_vars"] = {"PYSPARK_DRIVER_PYTHON": str(wrapper)}

    def zone(self, name: str) -> None:
        """Put the worker into a time zone."""
        self.resources.callback(time.tzset)
        self.monkeypatch.setenv("TZ", name)
        time.tzset()

    # --- running ----------------------------------------------------------------------------------

    def ours(self) -> Run:
        """Run it by ours; of the datasets only what is the same in each run is compared."""
        run = super().ours()
        return replace(run, datasets=_summary(run.datasets, self._lake()))

    def _lake(self) -> str:
        return str(self.folder / f"lake{self._runs}")

    def _described(self, name: str) -> str:
        is_of_spark = name.startswith(("artifacts-", "blockmgr-", "spark-"))
        return OF_SPARK if is_of_spark else super()._described(name)

    def _given(self) -> dict[str, Any]:
        given = {"application": str(self._application), "application_args": [self._lake()]}
        return {**super()._given(), **given}

    def _write_script(self) -> None:
        self._runs += 1
        lake = Path(self._lake())
        lake.mkdir()
        (lake / "days.csv").write_text("".join(f"{n},2024-05-0{1 + n % 2}\n" for n in range(4)))
        self._application.write_text(_APPLICATION.format(**self.code))


def _summary(datasets: Any, lake: str) -> Any:
    """Give the partitions and the columns of each dataset."""
    found = {}
    for dataset in datasets or ():
        facets = {**dataset.get("facets", {}), **dataset.get("inputFacets", {})}
        facets |= dataset.get("outputFacets", {})
        found[dataset["name"].removeprefix(lake)] = [
            json.loads(json.dumps(facets.get(name, {}), sort_keys=True).replace(lake, ""))
            for name in ("schema", "subset", "columnLineage")
        ]
    return found
