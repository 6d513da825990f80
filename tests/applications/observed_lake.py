"""Reads and writes of files, catalog tables, Delta and Iceberg, each with what is true of it."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from pathlib import Path

import planted
from planted import case, distinct
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import IntegerType

LAKE = Path(sys.argv[1])
DAYS = ["2024-05-05", "2024-05-06", "2024-05-07"]
REGIONS = ["us", "eu", "a b/c=d%", None]
ALL = [{"dt": d, "region": r} for d in DAYS for r in REGIONS]
US = [{"dt": d, "region": "us"} for d in DAYS]
TODAY = [p for p in ALL if p["dt"] == "2024-05-06"]
TODAY_US = [{"dt": "2024-05-06", "region": "us"}]
WHOLE = [{}]

spark = SparkSession.builder.getOrCreate()


def orders(rows=None):
    values = rows or [(d, r, i + 1) for i, d in enumerate(DAYS) for r in REGIONS]
    return spark.createDataFrame(values, "dt string, region string, amount int")


def write(frame, folder, mode="overwrite", *columns, **options):
    frame.write.mode(mode).partitionBy(*columns).options(**options).parquet(str(LAKE / folder))


def read(folder):
    return spark.read.parquet(str(LAKE / folder))


def sink(frame):
    frame.write.format("noop").mode("overwrite").save()


# --- files by path --------------------------------------------------------------------------------


@case(writes=["orders"], modes={"orders": "whole"})
def partition_by():
    write(orders(), "orders", "overwrite", "dt", "region")


@case(reads={"orders": ALL})
def whole_read():
    sink(read("orders"))


@case(reads={"orders": TODAY})
def filtered_read():
    sink(read("orders").where("dt = '2024-05-06' and amount > 0"))


@case(reads={"orders": [{"dt": "2024-05-06", "region": "a b/c=d%"}]})
def escaped_value():
    sink(read("orders").where("dt = '2024-05-06' and region = 'a b/c=d%'"))


@case(reads={"orders": [{"dt": d, "region": None} for d in DAYS]})
def null_partition():
    sink(read("orders").where("region is null"))


@case(reads={"orders": []})
def empty_selection():
    sink(read("orders").where("dt = '1999-01-01'"))


@case(reads={"orders": ALL})
def filtered_and_unfiltered_scan():
    today = read("orders").where("dt = '2024-05-06'").select("region", "amount")
    sink(today.unionByName(read("orders").select("region", "amount")))


@case(reads={"orders": TODAY_US})
def partition_folder():
    sink(read("orders/dt=2024-05-06/region=us"))


@case(reads={"orders": TODAY})
def base_path():
    path = str(LAKE / "orders/dt=2024-05-06")
    sink(spark.read.option("basePath", str(LAKE / "orders")).parquet(path))


@case(reads={"orders": [p for p in US if p["dt"] != "2024-05-05"]})
def several_folders():
    paths = [str(LAKE / f"orders/dt={d}/region=us") for d in DAYS[1:]]
    sink(spark.read.parquet(*paths))


@case(writes=["days"])
def small_table():
    rows = [(d, 1 if d == "2024-05-06" else 0) for d in DAYS]
    frame = spark.createDataFrame(rows, "dt string, open int")
    frame.coalesce(1).write.mode("overwrite").parquet(str(LAKE / "days"))


@case(reads={"orders": TODAY, "days": WHOLE})
def dynamic_pruning():
    days = read("days").where("open = 1").withColumn("dt", f.to_date("dt"))
    sink(read("orders").join(days, "dt"))


@case(reads={"orders": TODAY_US})
def cached_frame():
    frame = read("orders").where("dt = '2024-05-06' and region = 'us'").cache()
    frame.count()
    sink(frame.groupBy("region").count())
    frame.unpersist()


@case(reads={"orders": TODAY, "days": WHOLE})
def scalar_subquery():
    read("orders").createOrReplaceTempView("o")
    read("days").createOrReplaceTempView("d")
    sink(spark.sql("select * from o where dt = (select max(to_date(dt)) from d where open = 1)"))


@case(reads={"orders": US})
def self_join_with_reused_exchange():
    us = read("orders").where("region = 'us'").groupBy("dt").agg(f.sum("amount").alias("s"))
    sink(us.alias("a").join(us.alias("b"), "dt"))


@case(reads={"orders": TODAY_US}, udfs=[["amount"]])
def python_udf():
    double = f.udf(lambda a: a * 2, IntegerType())
    frame = read("orders").where("dt = '2024-05-06' and region = 'us'")
    sink(frame.select((double("amount") + 1).alias("x")))


@case(writes=["orders"], modes={"orders": "dynamic"})
def dynamic_overwrite():
    frame = orders([("2024-05-07", "us", 7), ("2024-05-08", "eu", 8)])
    write(frame, "orders", "overwrite", "dt", "region", partitionOverwriteMode="dynamic")


@case()
def older_files():
    """Files of nobody that this application knows: not written through Spark."""
    for file in (LAKE / "orders/dt=2024-05-06/region=us").glob("*.parquet"):
        older = LAKE / "older/dt=2024-05-06/region=us"
        older.mkdir(parents=True)
        shutil.copy(file, older / "part-00000-01234567-89ab-cdef-0123-456789abcdef.parquet")


@case(writes=["older"], modes={"older": "append"})
def append_to_old_and_new():
    frame = orders([("2024-05-06", "us", 7), ("2024-05-09", "us", 8)])
    write(frame.repartition(3), "older", "append", "dt", "region")


@case(writes=["orders"], modes={"orders": "append"})
def append_nothing():
    write(orders().where("amount > 99"), "orders", "append", "dt", "region")


@case(writes=["nested"])
def repartitioned_write():
    write(orders().repartition(4), "nested", "overwrite", "region")


@case(reads={"orders": TODAY_US}, writes=["copy"])
def write_into_partition_folder():
    frame = read("orders/dt=2024-05-06/region=us")
    frame.write.mode("overwrite").parquet(str(LAKE / "copy/dt=2024-05-06"))


@case(writes=["left", "right"])
def two_threads():
    def put(folder, day):
        write(orders([(day, "us", 1)]), folder, "append", "dt")

    threads = [
        threading.Thread(target=put, args=a) for a in (("left", DAYS[0]), ("right", DAYS[1]))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@case(writes=["orders"], reads={"orders": TODAY_US})
def another_session():
    other = spark.newSession()
    frame = other.read.parquet(str(LAKE / "orders")).where("dt = '2024-05-06' and region = 'us'")
    frame = frame.withColumn("dt", f.lit("2024-06-01"))
    frame.write.mode("append").partitionBy("dt", "region").parquet(str(LAKE / "orders"))


# --- catalog tables -------------------------------------------------------------------------------


@case(writes=["warehouse/sales"], tables={"warehouse/sales": "sales"})
def save_as_table():
    orders().write.partitionBy("dt", "region").format("parquet").saveAsTable("sales")


@case(reads={"warehouse/sales": TODAY}, tables={"warehouse/sales": "sales"})
def catalog_read():
    sink(spark.table("sales").where("dt = '2024-05-06'"))


@case(
    reads={"orders": [{"dt": "2024-05-05", "region": "us"}]},
    writes=["warehouse/sales"],
    modes={"warehouse/sales": "static"},
)
def static_insert():
    read("orders").createOrReplaceTempView("o")
    spark.sql(
        "insert overwrite sales partition (dt='2024-05-10', region='us') "
        "select amount from o where dt='2024-05-05' and region='us'"
    )


@case(writes=["warehouse/sales"], modes={"warehouse/sales": "static"})
def partly_static_insert():
    orders([("", "us", 1), ("", "eu", 2)]).createOrReplaceTempView("v")
    spark.sql(
        "insert overwrite sales partition (dt='2024-05-11', region) select amount, region from v"
    )


@case(writes=["warehouse/sales"], modes={"warehouse/sales": "append"})
def dynamic_insert():
    orders([("2024-05-12", None, 1)]).createOrReplaceTempView("v")
    spark.sql("insert into sales select amount, dt, region from v")


@case(reads={"warehouse/sales": [{"dt": "2024-05-20", "region": "moved"}]})
def partition_with_its_own_location():
    orders([("x", "y", 1)]).select("amount").write.parquet(str(LAKE / "elsewhere/moved"))
    spark.sql(
        "alter table sales add partition (dt='2024-05-20', region='moved') "
        f"location '{LAKE}/elsewhere/moved'"
    )
    sink(spark.table("sales").where("dt = '2024-05-20'"))


# --- Delta ----------------------------------------------------------------------------------------


def delta_truth(folder):
    """Partitions that the commits since the last call added and removed, from the log."""
    if not (LAKE / folder / "_delta_log").is_dir():
        return None
    log = sorted((LAKE / folder / "_delta_log").glob("*.json"))
    added, removed = [], []
    for file in log[DELTA_SEEN.get(folder, 0) :]:
        for line in file.read_text().splitlines():
            action = json.loads(line)
            for key, found in (("add", added), ("remove", removed)):
                if action.get(key, {}).get("dataChange"):
                    path, values = action[key]["path"], action[key].get("partitionValues") or {}
                    # A file's removal leaves out the values that are null; its adding does not.
                    found.append(DELTA_VALUES.setdefault((folder, path), values))
    DELTA_SEEN[folder] = len(log)
    return {"written": distinct(added), "removed": distinct(removed)}


DELTA_SEEN: dict[str, int] = {}
DELTA_VALUES: dict[tuple[str, str], dict] = {}


@case(needs="delta", writes=["delta_orders"], modes={"delta_orders": "create"})
def delta_write():
    frame = orders([(d, r, 1) for d in DAYS for r in ("us", None)])
    frame.write.format("delta").partitionBy("dt", "region").save(str(LAKE / "delta_orders"))


@case(
    needs="delta", reads={"delta_orders": [{"dt": "2024-05-06", "region": r} for r in ("us", None)]}
)
def delta_read():
    sink(spark.read.format("delta").load(str(LAKE / "delta_orders")).where("dt = '2024-05-06'"))


@case(needs="delta", writes=["delta_orders"])
def delta_dynamic_overwrite():
    frame = orders([("2024-05-07", "us", 9)]).write.format("delta").mode("overwrite")
    frame.option("partitionOverwriteMode", "dynamic").save(str(LAKE / "delta_orders"))


@case(needs="delta", writes=["delta_orders"])
def delta_update_and_delete():
    spark.sql(
        f"update delta.`{LAKE}/delta_orders` set amount = 5 "
        "where dt = '2024-05-05' and region = 'us'"
    )
    spark.sql(f"delete from delta.`{LAKE}/delta_orders` where dt = '2024-05-06'")


@case(needs="delta", writes=["warehouse/delta_table"])
def delta_table():
    spark.sql(
        "create table delta_table using delta partitioned by (dt) as "
        "select '2024-05-06' as dt, 1 as amount"
    )
    spark.sql("insert into delta_table values ('2024-05-07', 2)")
    spark.sql(
        "merge into delta_table t using (select '2024-05-07' dt, 3 amount) s on t.dt = s.dt "
        "when matched then update set * when not matched then insert *"
    )


@case(
    needs="delta",
    writes=["warehouse/mapped"],
    expected={"warehouse/mapped": {"written": [{"dt": "2024-05-06"}, {"dt": "2024-05-07"}]}},
)
def delta_column_mapping():
    """Have other names for the columns in the log than in the table."""
    spark.sql(
        "create table mapped (amount int, dt string) using delta partitioned by (dt) "
        "tblproperties ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql("insert into mapped values (1, '2024-05-06'), (2, '2024-05-07')")


@case(needs="delta", reads={"warehouse/mapped": [{"dt": "2024-05-06"}]})
def delta_column_mapping_read():
    sink(spark.table("mapped").where("dt = '2024-05-06'"))


@case(needs="delta", writes=["delta_orders"])
def delta_optimize():
    spark.sql(f"optimize delta.`{LAKE}/delta_orders`")


# --- Iceberg --------------------------------------------------------------------------------------

ICE = "lakehouse.db.orders"


@case(
    needs="iceberg",
    writes=["iceberg/db/orders"],
    listed=False,
    expected={"iceberg/db/orders": {"written": [], "removed": []}},
)
def iceberg_create():
    spark.sql(
        f"create table {ICE} (id bigint, ts timestamp, region string) using iceberg "
        "partitioned by (days(ts), region)"
    )


def ice(day, region):
    return {"ts_day": day, "region": region}


@case(
    needs="iceberg",
    writes=["iceberg/db/orders"],
    expected={
        "iceberg/db/orders": {
            "written": [
                ice("2024-05-05", "us"),
                ice("2024-05-06", None),
                ice("2024-05-06", "a b/c=d%"),
                ice("2024-05-06", "null"),
            ]
        }
    },
)
def iceberg_append():
    rows = [
        (1, "2024-05-05 01:00:00", "us"),
        (2, "2024-05-06 02:00:00", None),
        (3, "2024-05-06 03:00:00", "a b/c=d%"),
        (4, "2024-05-06 03:00:00", "null"),
    ]
    frame = spark.createDataFrame(rows, "id bigint, ts string, region string")
    frame.withColumn("ts", f.to_timestamp("ts")).writeTo(ICE).append()


@case(
    needs="iceberg",
    reads={
        "iceberg/db/orders": [
            ice("2024-05-06", None),
            ice("2024-05-06", "a b/c=d%"),
            ice("2024-05-06", "null"),
        ]
    },
)
def iceberg_read():
    sink(spark.table(ICE).where("ts >= '2024-05-06' AND coalesce(upper(region), '') <> 'NOWHERE'"))


@case(
    needs="iceberg",
    writes=["iceberg/db/orders"],
    expected={
        "iceberg/db/orders": {
            "written": [ice("2024-05-05", "us")],
            "removed": [ice("2024-05-05", "us")],
        }
    },
)
def iceberg_overwrite_partitions():
    rows = [(7, "2024-05-05 09:00:00", "us")]
    frame = spark.createDataFrame(rows, "id bigint, ts string, region string")
    frame.withColumn("ts", f.to_timestamp("ts")).writeTo(ICE).overwritePartitions()


@case(
    needs="iceberg",
    writes=["iceberg/db/orders"],
    expected={"iceberg/db/orders": {"written": [], "removed": [ice("2024-05-05", "us")]}},
)
def iceberg_delete():
    spark.sql(f"delete from {ICE} where ts < '2024-05-06'")


@case(
    needs="iceberg",
    writes=["iceberg/db/made"],
    expected={"iceberg/db/made": {"written": [{"region": "us"}], "removed": []}},
)
def iceberg_table_as_select():
    spark.sql(
        "create table lakehouse.db.made using iceberg partitioned by (region) as "
        "select 1 as id, 'us' as region"
    )


# --------------------------------------------------------------------------------------------------


if __name__ == "__main__":
    planted.run(LAKE, spark, delta_truth)
