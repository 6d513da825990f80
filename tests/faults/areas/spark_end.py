"""How the job ends: it fails, is killed, or is ended by Airflow."""

from __future__ import annotations

from tests.faults.bench import time_is_up
from tests.faults.registry import Area

AREA = Area(
    "How the job ends",
    "The task ends as its job does. What the job had done until then is in the event.",
)
fault = AREA.fault
FAILS = "AirflowException (exit code 1)"


@fault("The job fails", ends=FAILS, changes="a failed job's")
def _(bench):
    bench.job["exit"] = 1


@fault("The job fails before it has a session", "no_events", ends=FAILS)
def _(bench):
    bench.job |= {"exit": 1, "events": None, "observed": None}


@fault("The job ends well and reports nothing", "no_events")
def _(bench):
    bench.job |= {"events": None, "observed": None}


@fault(
    "The driver is killed by the kernel",
    "torn_event",
    "application_unfinished",
    ends="exit code -9",
)
def _(bench):
    bench.events = bench.events[:-40]
    bench.job["code"] = "import os; os.kill(os.getpid(), 9)"


@fault("The driver ends by a segmentation fault", ends="exit code -11", changes="a failed job's")
def _(bench):
    bench.job["code"] = "import os; os.kill(os.getpid(), 11)"


@fault(
    "The job ends with code 143, as by a SIGTERM", ends="exit code 143", changes="a failed job's"
)
def _(bench):
    bench.job["exit"] = 143


@fault("spark-submit may not be executed", "no_events", ends="PermissionError")
def _(bench):
    submit = bench.spark.home.parent / "bin" / "spark-submit"
    submit.chmod(0o600)
    bench.monkeypatch.setenv("PATH", str(submit.parent))


@fault("spark-submit is no program", "no_events", ends="exit code 127")
def _(bench):
    (bench.spark.home.parent / "bin" / "spark-submit").write_text("no program")


@fault("The job prints a hundred thousand lines", within=60)
def _(bench):
    bench.job["code"] = "print('line\\n' * 100_000)"


@fault("The job prints one line of ten megabytes")
def _(bench):
    bench.job["code"] = "print('x' * 10_000_000)"


@fault("Airflow ends the task while its job runs", ends="AirflowException", changes="the job's")
def _(bench):
    bench.interrupt(lambda task: task.on_kill())


@fault(
    "Airflow ends the task before the job has reported anything",
    "no_events",
    ends="AirflowException",
)
def _(bench):
    bench.job |= {"events": None, "observed": None}
    bench.interrupt(lambda task: task.on_kill())


@fault(
    "The task's timeout fires while its job runs", ends="AirflowTaskTimeout", changes="the job's"
)
def _(bench):
    bench.interrupt(time_is_up)


@fault("The task's timeout fires while the events are merged", "collection_cut")
def _(bench):
    bench.patch(".lineage.bundle.merge", time_is_up)


@fault("The task's timeout fires while the events are read", "collection_cut")
def _(bench):
    bench.patch(".spark.capture.events.read_events", time_is_up)


@fault("The task's timeout fires while the XCom is pushed", warns="is not shown in Airflow")
def _(bench):
    def push(ti, key, value):
        if key == "sparklineage":  # and not what is expected, which is pushed before the job
            time_is_up()

    bench.monkeypatch.setattr(type(bench.ti), "xcom_push", push)


@fault("The task's timeout fires while old bundles are swept")
def _(bench):
    bench.patch(".spark.capture.bundle.sweep", time_is_up)


@fault("The task's timeout fires while the bundle is removed", leaves=("*",))
def _(bench):
    bench.patch("shutil.rmtree", time_is_up)


@fault("The task's timeout fires while partitions are followed up")
def _(bench):
    bench.patch(".operators.partition_check.checks", time_is_up)


@fault("There is no time at all for collecting", "collection_cut")
def _(bench):
    bench.set("collect_timeout", 0)
