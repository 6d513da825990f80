"""What the observer in the driver wrote: nothing, half of it, or something else."""

from __future__ import annotations

import errno

from tests.faults.registry import Area

AREA = Area(
    "What the observer wrote",
    "The observer knows partitions, and the columns that the listener does not see. Without it "
    "datasets and columns are those that the listener reports.",
)
fault = AREA.fault
UNKNOWN = "partitions_unknown"
MALFORMED = "malformed_observations"


@fault("The observer writes nothing", "observations_missing")
def _(bench):
    bench.job["observed"] = None


@fault("The observer writes an empty file", "observations_missing")
def _(bench):
    bench.observations = b""


@fault("The observer's last line is torn", UNKNOWN)
def _(bench):
    bench.observations = bench.observations[:-30]


@fault("A line of the observer's is garbage", MALFORMED)
def _(bench):
    bench.observations += b"garbage\n"


@fault("A line of the observer's is invalid UTF-8", MALFORMED)
def _(bench):
    bench.observations += b'{"kind": "\xff\xfe"}\n'


@fault("A line of the observer's is NUL bytes", MALFORMED)
def _(bench):
    bench.observations += b"\0" * 4096 + b"\n"


@fault("A line of the observer's is nested a hundred thousand deep", MALFORMED)
def _(bench):
    bench.observations += b"[" * 100_000 + b"\n"


@fault("Every line of the observer's is there twice")
def _(bench):
    bench.observations += b"\n".join(bench.observations.splitlines()[1:]) + b"\n"


@fault("The observer observed a dataset that no event has", "partitions_inexact")
def _(bench):
    bench.observations = bench.observations.replace(b"file:/lake/orders", b"file:/lake/other")


@fault("The observer failed in a query", "observer_failed")
def _(bench):
    bench.observations += b'{"error": "Py4JNetworkError: the gateway is gone"}\n'


@fault("The observer's file is a folder", "observations_missing")
def _(bench):
    bench.job["observed"] = None
    bench.meanwhile("pathlib.Path(observations).mkdir()")


@fault("The disk gives an I/O error when the observations are read", "observations_missing")
def _(bench):
    error = OSError(errno.EIO, "Input/output error")
    bench.breaks(".spark.capture.observations.read_observations", error)


@fault("The observer's file is a pipe that nobody writes to", "observations_missing")
def _(bench):
    bench.job["observed"] = None
    bench.meanwhile("__import__('os').mkfifo(observations)")


@fault("The observer's file is a device without an end", "observations_missing")
def _(bench):
    bench.job["observed"] = None
    bench.meanwhile("pathlib.Path(observations).symlink_to('/dev/zero')")


@fault("The observer reports an error of fifty megabytes", "observer_failed")
def _(bench):
    bench.observations += b'{"error": "' + b"x" * 50_000_000 + b'"}\n'


@fault("The observer reports ten thousand errors", "observer_failed")
def _(bench):
    bench.observations += b'{"error": "the gateway is gone"}\n' * 10_000
