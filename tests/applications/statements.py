"""Statements that are easily reported to have read or written more than they did.

Without its lake it plants that, and ends: what a job finds there is none of its own doing. Each
case has folders of its own, named like it.
"""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

LAKE = Path(sys.argv[1])
DAYS = ["2024-05-05", "2024-05-06", "2024-05-07"]
TODAY = "dt = '2024-05-06'"
PARQUET = (
    *("ignored", "ignored_source", "ignored_shuffle", "ignored_join", "failed", "aqe", "cached"),
    *(
        "limited",
        "shown",
        "counted_limit",
        "sorted_limit",
        "limited_join",
        "one_file",
        "glob_filter",
    ),
    *("one", "other"),
    *("located", "added", "repaired", "inserted", "renamed", "subquery", "reused", "no_files"),
)
DELTA = ("merged", "whole", "skipping", "delta_limit", "delta_ignored", "delta_located")
FEEDS = ("feed", "feed_streamed")
TEXTS = ("header", "inferred", "files", "globbed", "union", "json", "json_days", "text")

spark = SparkSession.builder.getOrCreate()
has_delta = "delta" in spark.conf.get("spark.sql.extensions", "")


def path(name):
    return f"{LAKE}/{name}"


def parquet(name):
    return spark.read.parquet(path(name))


def csv(name, **options):
    return spark.read.csv(path(name), header=True, **options)


def write(frame, name):
    frame.write.parquet(path(f"out_{name}"))


def plant():
    days = F.element_at(F.array(*map(F.lit, DAYS)), (F.col("id") % 3 + 1).cast("int"))
    events = spark.range(30).select("id", (F.col("id") * 2).alias("user"), days.alias("dt"))
    events = events.repartition(1)
    for name in PARQUET:
        events.write.partitionBy("dt").parquet(path(name))
    (LAKE / "no_files" / "dt=2024-05-08").mkdir()
    for name in DELTA if has_delta else ():
        events.write.format("delta").partitionBy("dt").save(path(name))
    for name in FEEDS if has_delta else ():
        spark.sql(
            f"create table delta.`{path(name)}` (id bigint, user bigint, dt string) using delta "
            "partitioned by (dt) tblproperties (delta.enableChangeDataFeed = true)"
        )
        events.write.format("delta").mode("append").save(path(name))
        spark.sql(f"update delta.`{path(name)}` set user = 0 where {TODAY} and id > 6")
    for name in TEXTS:
        writer = events.repartition(2).write.option("header", True)
        if name.startswith("json"):
            writer.partitionBy("dt").json(path(name))
        elif name == "text":
            events.select(F.col("user").cast("string"), "dt").write.partitionBy("dt").text(
                path(name)
            )
        elif name in ("files", "globbed", "union"):
            writer.csv(path(name) + "/a")
            events.write.option("header", True).csv(path(name) + "/b")
        else:
            writer.partitionBy("dt").csv(path(name))
    spark.range(5).select("id", F.col("id").cast("string").alias("name")).coalesce(1).write.parquet(
        path("users")
    )
    spark.range(0).write.parquet(path("nothing"))


def skipped_writes():
    spark.read.parquet(path("users")).write.parquet(path("out_ignored"))
    parquet("ignored").where(TODAY).write.mode("ignore").parquet(path("out_ignored"))
    parquet("ignored").where(TODAY).write.mode("ignore").parquet(path("out_ignored"))
    # Its shuffle runs before Spark looks at what is there.
    grouped = parquet("ignored_shuffle").where(TODAY).groupBy("user").count()
    grouped.write.mode("ignore").parquet(path("out_ignored"))
    parquet("ignored_source").where(TODAY).write.mode("ignore").parquet(path("out_ignored_new"))
    parquet("ignored_source").limit(0).where("id < 0").write.partitionBy("dt").mode(
        "ignore"
    ).parquet(path("out_ignored_empty"))
    if has_delta:
        frame = parquet("ignored_join").where(TODAY)
        frame.write.format("delta").mode("ignore").save(path("delta_ignored"))
        frame.write.format("delta").mode("ignore").save(path("out_delta_ignored"))


def failed_before_it_read():
    try:
        parquet("failed").where(TODAY).write.parquet(path("users"))
    except Exception as error:
        print("failed as planned:", str(error)[:80])


def opened_in_other_ways():
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    write(parquet("aqe").join(parquet("nothing"), "id").groupBy("id").count(), "aqe")
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    kept = parquet("cached").where(TODAY).cache()
    write(kept, "cached")
    write(kept.select("id"), "cached_again")
    kept.unpersist()
    for name in ("subquery", "users"):
        parquet(name).createOrReplaceTempView(name)
    write(
        spark.sql(f"select * from users where id < (select max(id) from subquery where {TODAY})"),
        "subquery",
    )
    half = parquet("reused").where(TODAY).groupBy("user").count()
    write(half.union(half), "reused")
    write(parquet("no_files").where("dt = '2024-05-08'"), "no_files")


def limits():
    parquet("limited").limit(3).collect()
    parquet("shown").show(2)
    parquet("counted_limit").groupBy("dt").count().limit(1).collect()
    parquet("sorted_limit").orderBy("id").limit(3).collect()
    write(parquet("limited_join").limit(4).join(parquet("users"), "id"), "limited_join")
    parquet("one_file").where(TODAY).first()


def chosen_files():
    write(
        spark.read.option("pathGlobFilter", "*.parquet").parquet(path("glob_filter")), "glob_filter"
    )
    if not has_delta:
        return
    parquet("inserted").where(TODAY).createOrReplaceTempView("changes")
    spark.sql(
        f"merge into delta.`{path('merged')}` t using changes s on t.dt = s.dt and "
        "t.dt = '2024-05-06' and t.id = s.id when matched then update set user = s.user + 1"
    )
    for name in ("whole", "skipping", "delta_limit"):
        frame = spark.read.format("delta").load(path(name))
        frame = frame.where("id < 0") if name == "skipping" else frame
        write(frame.limit(2) if name == "delta_limit" else frame, name)
    changes = {"readChangeFeed": "true", "startingVersion": "2"}
    streamed = spark.readStream.format("delta").options(**changes).load(path("feed_streamed"))
    to_files = streamed.writeStream.format("parquet").trigger(availableNow=True)
    to_files = to_files.option("checkpointLocation", path("out_feed_streamed/checkpoint"))
    to_files.start(path("out_feed_streamed")).awaitTermination()
    feed = spark.read.format("delta").options(**changes)
    write(feed.load(path("feed")), "feed")
    write(feed.load(path("feed")).groupBy("dt").agg(F.max("user").alias("most")), "feed_most")


def two_threads():
    """Write into one table at the same time; with Delta the listener hides what has a shuffle."""
    shuffled = parquet("one").groupBy("user").agg(F.max("id").alias("id")).select("id", "user")
    writes = [(shuffled, DAYS[0]), (parquet("other").select("id", "user"), DAYS[1])]
    together = threading.Barrier(len(writes))

    def put(frame, day):
        together.wait()
        write(frame, f"threads/dt={day}")

    with ThreadPoolExecutor(len(writes)) as threads:
        for done in [threads.submit(put, *each) for each in writes]:
            done.result()


def definitions():
    columns = "(id bigint, user bigint, dt string) using parquet partitioned by (dt)"
    for name in ("located", "added", "repaired"):
        spark.sql(f"create table {name} {columns} location '{path(name)}'")
    spark.sql("alter table added add partition (dt = '2024-05-05')")
    spark.sql("msck repair table repaired")
    spark.sql("create table made (id bigint, name string) using parquet")
    spark.sql("create table made_like like made")
    spark.sql("alter table made set tblproperties ('a' = 'b')")
    spark.sql("alter table made add columns (more int)")
    spark.sql(f"create table filled {columns}")
    parquet("inserted").createOrReplaceTempView("inserted")
    spark.sql(f"insert into filled select * from inserted where {TODAY}")
    spark.sql("create table selected using parquet as select * from users")
    parquet("users").write.saveAsTable("saved")
    write(spark.table("repaired").where(TODAY), "repaired")
    if has_delta:
        spark.sql(f"create table delta_found using delta location '{path('delta_located')}'")
        spark.sql("create table delta_made (id bigint, name string) using delta")
        spark.sql("create table delta_filled (id bigint, name string) using delta")
        spark.sql("insert into delta_filled select * from users")


def texts():
    write(csv("header").where(TODAY), "header")
    write(csv("inferred", inferSchema=True), "inferred")
    write(csv("files/a"), "files")
    write(csv("globbed/*"), "globbed")
    write(spark.read.csv([path("union/a"), path("union/b")], header=True), "union")
    write(spark.read.json(path("json")), "json")
    write(spark.read.json(path("json_days")).where(TODAY), "json_days")
    write(spark.read.text(path("text")).where(TODAY), "text")


def moved():
    parquet("renamed").where(TODAY).write.partitionBy("dt").parquet(path("staging/renamed"))
    files = spark._jvm.org.apache.hadoop.fs
    system = files.FileSystem.get(spark._jsc.hadoopConfiguration())
    system.rename(files.Path(path("staging/renamed")), files.Path(path("published")))


if not (LAKE / "users").exists():
    plant()
else:
    for case in (skipped_writes, failed_before_it_read, opened_in_other_ways, limits, chosen_files):
        case()
    for case in (two_threads, definitions, texts, moved):
        case()
spark.stop()
