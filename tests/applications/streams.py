"""Streams of files and of Delta tables: what each run of one reads, and what it writes.

Each row has an id of its own that tells its partition, so the rows that arrived in a sink are the
truth on what was read. They are read back after all cases, into `arrived.json` next to the lake.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import planted
from planted import case
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as everybody does)

LAKE = Path(sys.argv[1])
SCHEMA = "id int, dt string, region string"
DAYS = [f"2024-05-{day:02}" for day in range(1, 11)]
REGIONS = ["us", "a b/c=d%", None]
PARTITIONS = [{"dt": d, "region": r} for d in DAYS for r in REGIONS]
NINE = [p for p in PARTITIONS if p["dt"] != DAYS[9]]
TENTH = [p for p in PARTITIONS if p["dt"] == DAYS[9]]
FIRST = [p for p in PARTITIONS if p["dt"] == DAYS[0]]
WHOLE = [{}]

spark = SparkSession.builder.getOrCreate()


def put(folder, partitions, form="parquet"):
    rows = [(PARTITIONS.index(p), p["dt"], p["region"]) for p in partitions]
    frame = spark.createDataFrame(rows, SCHEMA).coalesce(1)
    writer = frame.write.mode("append").partitionBy("dt", "region")
    writer.format(form).save(str(LAKE / folder))


def stream_of(folder="orders", **options):
    return spark.readStream.schema(SCHEMA).options(**options).parquet(str(LAKE / folder))


def checkpoint(name):
    return str(LAKE.parent / "checkpoints" / name)


def written(frame, sink, form="parquet", by=("dt", "region")):
    writer = frame.writeStream.format(form).option("checkpointLocation", checkpoint(sink))
    return writer.partitionBy(*by) if by else writer


def run(frame, sink, name=None, form="parquet", by=("dt", "region"), start=None):
    """Run all batches that there are."""
    writer = written(frame, name or sink, form, by).trigger(availableNow=True)
    query = start(writer) if start else writer.start(str(LAKE / sink))
    query.awaitTermination()


# --- files ----------------------------------------------------------------------------------------


@case(writes=["orders", "days"])
def plant_nine_days():
    put("orders", NINE)
    spark.createDataFrame([(1, "x")], "id int, name string").coalesce(1).write.json(
        str(LAKE / "days")
    )


@case(reads={"orders": NINE}, writes=["copy"], modes={"copy": "append"})
def nine_days():
    run(stream_of(), "copy")


@case(writes=["orders"])
def plant_the_tenth_day():
    put("orders", TENTH)


@case(reads={"orders": TENTH}, writes=["copy"])
def one_of_ten_days():
    run(stream_of(), "copy")


@case(writes=["copy"])
def nothing_new():
    run(stream_of(), "copy")


@case(reads={"orders": FIRST}, writes=["pruned"])
def pruned():
    run(stream_of().where(f"dt = '{DAYS[0]}'").select("id"), "pruned", form="json", by=())


@case(reads={"orders": PARTITIONS}, writes=["small"])
def five_batches_and_a_compacted_log():
    """Spark puts the names of all files into one entry of the sink's log at the third batch.

    Each batch is looked at before the next one, however busy the machine is: they are far apart.
    """
    spark.conf.set("spark.sql.streaming.fileSink.log.compactInterval", "3")
    writer = written(stream_of(maxFilesPerTrigger=6), "small").trigger(processingTime="2 seconds")
    query = writer.start(str(LAKE / "small"))
    query.processAllAvailable()
    query.stop()
    spark.conf.unset("spark.sql.streaming.fileSink.log.compactInterval")


@case(reads={"orders": PARTITIONS})
def a_checkpoint_that_is_gone_at_the_end():
    frame = stream_of()
    writer = frame.writeStream.format("memory").queryName("in_memory").trigger(once=True)
    writer.start().awaitTermination()


@case(reads={"orders": PARTITIONS, "days": WHOLE}, writes=["joined"])
def joined_with_what_is_no_stream():
    days = spark.read.schema("id int, name string").json(str(LAKE / "days"))
    run(stream_of().join(days, "id", "left").select("id", "dt"), "joined", by=("dt",))


@case(reads={"days": WHOLE}, writes=["names"])
def files_without_partitions():
    frame = spark.readStream.schema("id int, name string").json(str(LAKE / "days"))
    run(frame, "names", by=())


@case(reads={"orders": PARTITIONS}, writes=["batches"], modes={"batches": "append"})
def for_each_batch():
    def write(batch, number):
        batch.write.mode("append").partitionBy("dt", "region").parquet(str(LAKE / "batches"))

    run(stream_of(), "", "batches", by=(), start=lambda w: w.foreachBatch(write).start())


@case(reads={"orders": PARTITIONS})
def a_batch_that_fails():
    def fail(batch, number):
        batch.collect()
        message = "planned"
        raise ValueError(message)

    try:
        run(stream_of(), "", "failing", by=(), start=lambda w: w.foreachBatch(fail).start())
    except StreamingQueryException as error:
        if "planned" not in str(error):
            raise


@case(writes=["ticks"])
def a_source_without_data():
    frame = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    writer = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint("ticks"))
    query = writer.start(str(LAKE / "ticks"))
    until = time.monotonic() + 60
    while not any(p["numInputRows"] for p in query.recentProgress) and time.monotonic() < until:
        time.sleep(0.1)
    query.stop()


@case(reads={"orders": PARTITIONS}, writes=["warehouse/kept"])
def a_table():
    run(stream_of(), "", "table", start=lambda w: w.toTable("kept"))


# --- Delta ----------------------------------------------------------------------------------------


@case(writes=["changes"], needs="delta")
def plant_changes():
    put("changes", NINE, "delta")


@case(reads={"changes": NINE}, writes=["mirror"], needs="delta")
def delta_to_delta():
    run(spark.readStream.format("delta").load(str(LAKE / "changes")), "mirror", form="delta")


@case(writes=["changes"], needs="delta")
def plant_more_changes():
    put("changes", TENTH, "delta")


@case(reads={"changes": TENTH}, writes=["mirror"], needs="delta")
def one_delta_commit():
    run(spark.readStream.format("delta").load(str(LAKE / "changes")), "mirror", form="delta")


@case(reads={"orders": PARTITIONS}, writes=["counts"], needs="delta")
def complete_output():
    counts = stream_of().groupBy("dt").agg(F.count("*").alias("orders"))

    def start(writer):
        return writer.outputMode("complete").start(str(LAKE / "counts"))

    run(counts, "counts", form="delta", by=(), start=start)


planted.run(LAKE, spark)

SINKS = ("copy", "pruned", "small", "joined", "batches", "warehouse/kept")
arrived = {}
for name in SINKS:
    form = "json" if name == "pruned" else "parquet"
    rows = spark.read.format(form).load(str(LAKE / name)).select("id").collect()
    arrived[name] = [PARTITIONS[row.id] for row in sorted(rows)]
(LAKE.parent / "arrived.json").write_text(json.dumps(arrived))
