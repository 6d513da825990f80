"""What a job does to its own driver, with a real Spark, and what the driver's surroundings do."""

from __future__ import annotations

from functools import partial

from tests.faults.driver import OF_SPARK
from tests.faults.registry import Area, Lane

AREA = Area(
    "What happens in the driver",
    "The listener and the observer run inside the job's own driver, whatever the job does to it.",
)
fault = partial(AREA.fault, lane=Lane.SPARK, within=120.0)
slow = partial(fault, slow=True)

UNOBSERVED = ("internal_read_assumed", "partitions_unknown")
"""What is declared where the observer did not see a write."""
UNSEEN = ("internal_read_assumed", "observations_missing")
"""What is declared where there was no observer."""


WAITS = """
try:
    from sparklineage_observer.file_writes import FileWrites
    known = FileWrites.observe
    def waits(self, *args):
        FileWrites.observe = known
        time.sleep(11)
        return known(self, *args)
    FileWrites.observe = waits
except ImportError:  # the stock operator
    pass
"""


# --- the job and what is captured -----------------------------------------------------------------


@fault("The job deletes the capture bundle", "capture_unavailable")
def _(bench):
    bench.code["between"] = "import shutil; time.sleep(2)\nif bundle: shutil.rmtree(bundle)"


@slow("The job deletes the file of events", "capture_unavailable", "column_lineage_missing")
def _(bench):
    bench.code["between"] = "time.sleep(2)\nif bundle: (bundle / 'events.ndjson').unlink()"


@slow("The job deletes the file of observations", *UNOBSERVED)
def _(bench):
    bench.code["between"] = "time.sleep(2)\nif bundle: (bundle / 'observations.ndjson').unlink()"


@slow("The machine is so busy that the observer waits for eleven seconds in a look at a write")
def _(bench):
    bench.code["first"] = WAITS
    bench.code["between"] = "time.sleep(13)"


@slow(
    "The disk with the capture bundle is full from the middle of the job on",
    *("application_unfinished", "column_lineage_missing", "torn_event"),
    leaves=("filler",),
)
def _(bench):
    bench.small_disk()
    bench.code["between"] = FILLS


@slow(
    "The disk with the capture bundle is full for a while",
    *("application_unfinished", "column_lineage_missing", "malformed_events"),
)
def _(bench):
    bench.small_disk()
    bench.code["between"] = FILLS
    bench.code["last"] = "time.sleep(2)\nif bundle: filler.unlink()"


FILLS = """
time.sleep(2)
filler = bundle and bundle.parent / 'filler'
try:
    with open(filler or os.devnull, 'wb', buffering=0) as file:
        while filler: file.write(b'0' * 512)
except OSError:
    pass
"""


# --- the job and the observer ---------------------------------------------------------------------


@fault("The job removes all listeners of its session", *UNOBSERVED)
def _(bench):
    bench.code["between"] = "spark._jsparkSession.listenerManager().clear()"


@fault("The job ends the server by which Java calls Python", *UNOBSERVED)
def _(bench):
    bench.code["between"] = "time.sleep(2); spark.sparkContext._gateway.shutdown_callback_server()"


@fault("The job forks children, which end while it works")
def _(bench):
    bench.code["between"] = (
        "for _ in range(8):\n    if os.fork() == 0: sys.exit(0)\n    spark.range(3).count()"
    )


@slow("The observer cannot be unpacked", *UNSEEN)
def _(bench):
    bench.patch(".spark.submit.submitted_files.observer_zip", lambda: b"no zip")


@slow("The driver's Python reads no PYTHONPATH", *UNSEEN)
def _(bench):
    bench.python("-I")


@slow("The job forbids its Python to open files", *UNOBSERVED)
def _(bench):
    bench.code["between"] = (
        "import builtins\ndef no(*_, **__): raise PermissionError\nos.open = builtins.open = no"
    )


@slow("The job replaces what writes JSON", *UNOBSERVED)
def _(bench):
    bench.code["between"] = "import json; json.dumps = lambda *_, **__: 1 / 0"


@slow("The clock of the job's Python is frozen", "partitions_unknown")
def _(bench):
    bench.code["first"] = "time.time = time.monotonic = lambda: 0.0"


@slow("The job makes warnings errors, and logging raise")
def _(bench):
    bench.code["first"] = (
        "import logging, warnings; warnings.simplefilter('error')\n"
        "class Raising(logging.Handler):\n    def emit(self, _): raise RuntimeError\n"
        "logging.getLogger().addHandler(Raising())"
    )


@slow("The job goes to a folder that is gone, and closes its output")
def _(bench):
    bench.code["first"] = (
        "import tempfile; gone = tempfile.mkdtemp(); os.chdir(gone); os.rmdir(gone)"
    )
    bench.code["between"] = "sys.stdout.close(); sys.stderr = None"


@slow("The job switches logging off, and forgets modules and handlers at exit", *UNOBSERVED)
def _(bench):
    bench.code["between"] = (
        "spark.sparkContext.setLogLevel('OFF')\n"
        "for name in [n for n in sys.modules if 'sparklineage' in n]: del sys.modules[name]"
    )
    bench.code["last"] = "import atexit; atexit._clear()"


@slow("The job streams, with Python code for each batch", changes="it has more datasets")
def _(bench):
    bench.code["between"] = (
        "rows = spark.readStream.schema('id int').parquet(lake + '/orders')\n"
        "batch = lambda frame, _: frame.write.mode('append').parquet(lake + '/batches')\n"
        "writer = rows.writeStream.trigger(availableNow=True).foreachBatch(batch)\n"
        "writer.option('checkpointLocation', lake + '/state').start().awaitTermination()"
    )


@slow("The job has two sessions, and stops twice", "column_lineage_missing")
def _(bench):
    bench.code["between"] = "spark.newSession().range(3).write.parquet(lake + '/second')"
    bench.code["last"] = "spark.stop(); spark.stop()"


# --- the end of the driver ------------------------------------------------------------------------


@slow("The job ends with another exit code", ends="(exit code 3)")
def _(bench):
    bench.code["last"] = "sys.exit(3)"


@slow("The job ends at once, by os._exit", *UNOBSERVED, ends="(exit code 3)")
def _(bench):
    bench.code["last"] = "os._exit(3)"


@slow("The job still has a thread that works", changes="it has more datasets")
def _(bench):
    bench.code["last"] = (
        "import threading\n"
        "late = lambda: time.sleep(2) or orders.write.parquet(lake + '/late')\n"
        "threading.Thread(target=late).start()"
    )


@slow(
    "The JVM is killed in the second SparkContext of the job",
    *("action_unfinished", "application_unfinished", "observer_failed"),
    ends="AirflowException",
    leaves=(OF_SPARK,),
)
def _(bench):
    bench.code["last"] = (
        "spark.stop(); spark = SparkSession.builder.getOrCreate()\n"
        "spark.range(3).write.parquet(lake + '/third'); os.kill(os.getppid(), 9)"
    )


# --- clocks ---------------------------------------------------------------------------------------


@slow("Driver, session and worker are in three time zones")
def _(bench):
    bench.arguments["env_vars"] = {"TZ": "Asia/Kolkata"}
    bench.arguments["conf"]["spark.sql.session.timeZone"] = "Pacific/Auckland"
    bench.zone("America/New_York")
