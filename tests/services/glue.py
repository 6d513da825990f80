"""An AWS Glue that passes runs on to a Spark of this machine, and brings its listener."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.operators.adapters.glue import properties
from airflow_provider_sparklineage.operators.glue import SparkLineageGlueOperator
from airflow_provider_sparklineage.spark.submit import fetching, releases
from tests import emr_double, glue_double, record_events
from tests.cluster.submitting import Submitter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pytest
    from airflow.sdk import BaseOperator

    from tests.services.local_spark import LocalSpark


class GlueSubmitter(Submitter):
    """Starts applications as runs of jobs, which take named arguments alone."""

    def operator(
        self,
        application: str,
        *arguments: str,
        conf: Mapping[str, str] | None = None,
        **options: Any,
    ) -> BaseOperator:
        """Make the operator of an application; it asks Glue for the end."""
        pairs = " --conf ".join(f"{key}={value}" for key, value in (conf or {}).items())
        numbered = {f"--{number}": text for number, text in enumerate(arguments)}
        return SparkLineageGlueOperator(
            job_name=application,
            script_location=f"s3://{record_events.APPLICATIONS}/{application}.py",
            script_args={**({"--conf": pairs} if pairs else {}), **numbered},
            create_job_kwargs={"GlueVersion": "5.0"},
            iam_role_arn=emr_double.ROLE,
            job_poll_interval=1,
            **{"task_id": "job", **options},
        )


@contextmanager
def running(behind: LocalSpark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Submitter]:
    """Give what starts runs in this Glue."""
    monkeypatch.setattr(releases, "GLUE", (releases.Release(r"5\.0", behind.version),))
    drivers = {}

    def start(job, run):
        given = run.arguments
        script = job.command["ScriptLocation"].removeprefix("s3://")
        words = record_events.conf_options(properties(given))
        words += ["--driver-class-path", str(fetching.cached(behind.version[1]))]
        words += ["--py-files", given["--extra-py-files"]] if "--extra-py-files" in given else []
        numbered = [given[f"--{number}"] for number in range(9) if f"--{number}" in given]
        drivers[run.job_run_id] = behind.start([*words, script, *numbered])

    def state(run):
        return drivers[run.job_run_id].state("RUNNING", "SUCCEEDED", "FAILED")

    with glue_double.glue(monkeypatch, start, state):
        yield GlueSubmitter()
