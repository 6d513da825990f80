"""The two switches with which a user asks for another outcome: `strict`, and failing checks."""

from __future__ import annotations

import sys

from tests.faults.bench import raising
from tests.faults.registry import Area

AREA = Area(
    "The switches that may fail a task",
    "`strict` fails it before the job is submitted, never afterwards. "
    "`on_partition_mismatch='fail'` fails it for partitions that were observed, and for nothing "
    "that could not be observed.",
)
fault = AREA.fault
STRICT = "`strict`"
INEXACT = "partitions_inexact"
WRONG = "file:/lake/orders/dt=1999-01-01"


def _strict(bench):
    bench.lineage["strict"] = True
    bench.expect("the job is not submitted", lambda: not bench.spark.ran)


@fault("A setting is impossible, and the task is strict", "not_submitted", differs=STRICT)
def _(bench):
    _strict(bench)
    bench.set("observe", "perhaps")


@fault("There is no listener, and the task is strict", "not_submitted", differs=STRICT)
def _(bench):
    _strict(bench)
    bench.spark.jar.unlink()


@fault("The capture location is refused, and the task is strict", "not_submitted", differs=STRICT)
def _(bench):
    _strict(bench)
    bench.captures.touch()


@fault("The disk is full, and the task is strict", "not_submitted", differs=STRICT)
def _(bench):
    _strict(bench)
    bench.disk(28)


@fault("The driver is in the cluster, and the task is strict", "not_submitted", differs=STRICT)
def _(bench):
    _strict(bench)
    bench.arguments["conf"] = {"spark.submit.deployMode": "cluster"}


@fault("An extension is missing, and the task is strict", "not_submitted", differs=STRICT)
def _(bench):
    _strict(bench)
    bench.lineage["listener_extensions"] = ["/nowhere/shop.jar"]


@fault("Adding the listener has a defect, and the task is strict", "not_submitted", differs=STRICT)
def _(bench):
    _strict(bench)
    bench.breaks(".spark.submit.additions.injected")


@fault("The listener writes nothing, and the task is strict", "no_events")
def _(bench):
    bench.lineage["strict"] = True
    bench.job |= {"events": None, "observed": None}


@fault("Merging has a defect, and the task is strict", "merge_failed")
def _(bench):
    bench.lineage["strict"] = True
    bench.breaks(".lineage.bundle.merge")


def _checked(bench):
    bench.lineage |= {"reads": [WRONG], "on_partition_mismatch": "fail"}


@fault(
    "The job reads another partition than declared, and that fails the task",
    differs="`on_partition_mismatch`",
    changes="the check is of another partition",
)
def _(bench):
    _checked(bench)


@fault("Nothing was reported, and a mismatch fails the task", "no_events")
def _(bench):
    _checked(bench)
    bench.job |= {"events": None, "observed": None}


@fault("Nothing was observed, and a mismatch fails the task", "observations_missing", INEXACT)
def _(bench):
    _checked(bench)
    bench.job["observed"] = None


@fault(
    "The observations are garbage, and a mismatch fails the task",
    "malformed_observations",
    "partitions_unknown",
    INEXACT,
)
def _(bench):
    _checked(bench)
    bench.observations = b"garbage\n"


@fault("There is no listener, and a mismatch fails the task", "listener_unavailable")
def _(bench):
    _checked(bench)
    bench.spark.jar.unlink()


@fault("Merging has a defect, and a mismatch fails the task", "merge_failed")
def _(bench):
    _checked(bench)
    bench.breaks(".lineage.bundle.merge")


@fault("Comparing partitions has a defect, and a mismatch fails the task", "merge_failed")
def _(bench):
    _checked(bench)
    bench.breaks(".lineage.merge._reported")


def _calls(bench, callback):
    bench.lineage |= {"reads": [WRONG], "on_partition_mismatch_callback": callback}


DIFFERENT = "the check is of another partition"


@fault("The callback for mismatches raises", changes=DIFFERENT)
def _(bench):
    _calls(bench, raising(ValueError("a slip")))


@fault("The callback for mismatches ends the process", changes=DIFFERENT)
def _(bench):
    _calls(bench, sys.exit)


@fault(
    "The callback for mismatches hangs",
    changes=DIFFERENT,
    leaves=("thread on_partition*",),
    within=40,
)
def _(bench):
    bench.shorten(".operators.partition_check.CALLBACK_S", 0.3)
    _calls(bench, lambda _: bench.hang())
