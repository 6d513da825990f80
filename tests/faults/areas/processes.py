"""Other tries and processes on the same worker, and clocks."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime

from airflow_provider_sparklineage.spark.capture import bundle, ownership
from tests.faults.bench import raising
from tests.faults.registry import Area

AREA = Area(
    "Other processes and clocks",
    "Tries share one capture location, and each leaves alone what another one is working on.",
)
fault = AREA.fault
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC).timestamp()


def _old_bundle(bench):
    bench.captures.mkdir(mode=0o700)
    manifest = bundle.Manifest("0", started=datetime(2020, 1, 1, tzinfo=UTC))
    made = bundle.create(bench.captures, manifest)
    for path in (*made.path.iterdir(), made.path):
        os.utime(path, (LONG_AGO, LONG_AGO))
    return made


@fault("The worker was killed during an earlier try, and its bundle is still there")
def _(bench):
    made = _old_bundle(bench)
    made.release()
    bench.expect("the old bundle is swept", lambda: not made.path.exists())


@fault("Another try has been running for years when old bundles are swept")
def _(bench):
    made = _old_bundle(bench)
    bench.resources.callback(made.release)
    bench.expect("the other try's bundle is still there", made.path.exists)


@fault("The worker was killed while a properties file with keys was there")
def _(bench):
    bench.captures.mkdir(mode=0o700)
    file = bench.captures / f"{bundle.PROPERTIES_PREFIX}killed"
    file.write_text("spark.openlineage.transport.auth.apiKey=key\n")
    file.chmod(0o600)
    os.utime(file, (LONG_AGO, LONG_AGO))
    bench.expect("the properties file is swept", lambda: not file.exists())


@fault("A folder that is no bundle of ours is in the capture location")
def _(bench):
    other = bench.captures / "somebody-elses"
    other.mkdir(parents=True)
    bench.captures.chmod(0o700)
    (other / ownership.LOCK_FILE).touch()
    os.utime(other, (LONG_AGO, LONG_AGO))
    bench.expect("it is still there", other.exists)


@fault("Another try of the same task runs at the same time")
def _(bench):
    bench.captures.mkdir(mode=0o700)
    task = bundle.TaskIdentity("shop", "revenue", "manual", 1)
    other = bundle.create(bench.captures, bundle.Manifest("0", task=task))
    bench.resources.callback(other.release)
    bench.expect("the other try's bundle is still there", other.path.exists)


@fault("The worker's clock jumps back by years while the job runs")
def _(bench):
    class Past(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(1999, 1, 1, tzinfo=tz)

    bench.patch(".operators.attempt.collect.datetime", Past)


@fault("The worker's time zone is not that of the driver")
def _(bench):
    bench.monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    bench.job["code"] = "os.environ['TZ'] = 'America/Adak'"


@fault("The worker starts in a folder that is gone")
def _(bench):
    gone = bench.folder / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()


@fault("Nothing that the worker makes may be read, by its umask")
def _(bench):
    bench.resources.callback(os.umask, os.umask(0o777))


@fault("The worker ignores the end of its child processes")
def _(bench):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    bench.resources.callback(signal.signal, signal.SIGCHLD, before)


@fault("The worker can start no thread", warns="is not in the archive")
def _(bench):
    bench.patch("threading.Thread.start", raising(RuntimeError("can't start new thread")))


@fault("The run's id looks like a path")
def _(bench):
    bench.ti.run_id = bench.context["run_id"] = "../../../../../outside"
    bench.expect("no file is outside", lambda: not [*bench.folder.parent.rglob("outside*")])
