"""The constructions of SQL as DataFrames, and what only DataFrames have; one output each.

What it is for: column lineage of the DataFrame API, where no statement shows what the plan does
not, and frames that come from no dataset.

Truth
  inputs         orders, customers, profiles
  intermediates  none
  outputs        frames/<name> for each function in FRAMES
  columns        in tests/golden/lineage/frame_queries.txt
"""

import sys
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import DoubleType

SCHEMAS = {
    "orders": "order_id long, customer_id long, amount double, region string, dt string",
    "customers": "customer_id long, name string, email string, segment string",
    "profiles": (
        "customer_id long, address struct<street:string,city:string,geo:struct<lat:double,"
        "lon:double>>, tags array<string>, attributes map<string,string>"
    ),
}


class Frames:
    """The inputs, read anew for each output."""

    def __init__(self, spark: SparkSession, lake: str) -> None:
        """Remember where to read."""
        self.spark = spark
        self.lake = lake

    def __getattr__(self, name: str) -> DataFrame:
        """Read an input by its name."""
        return self.spark.read.schema(SCHEMAS[name]).parquet(f"{self.lake}/{name}")


@F.udf(DoubleType())
def halved(amount: float) -> float:
    """Stand for anything that is easier to say in Python."""
    return amount / 2


def latest_first() -> Window:
    """Give a window over each customer's orders."""
    return Window.partitionBy("customer_id").orderBy(F.desc("dt"))


FRAMES: dict[str, Callable[[Frames], DataFrame]] = {
    "selected": lambda f: f.orders.select("order_id", F.col("amount").alias("paid")),
    "with_column": lambda f: f.orders.select("order_id", "amount").withColumn(
        "gross", F.col("amount") * 1.19
    ),
    "renamed": lambda f: f.customers.withColumnRenamed("name", "full_name").drop("email"),
    "filtered": lambda f: f.orders.where("amount > 0").select("order_id"),
    "grouped": lambda f: f.orders.groupBy("region").agg(
        F.sum("amount").alias("total"), F.count("*").alias("n")
    ),
    "joined": lambda f: f.orders.join(f.customers, "customer_id", "left").select(
        "order_id", "name", F.coalesce("segment", F.lit("none")).alias("segment")
    ),
    "self_joined": lambda f: (
        f.orders.alias("a")
        .join(f.orders.alias("b"), F.expr("a.customer_id = b.customer_id AND a.dt > b.dt"))
        .select("a.order_id", F.col("b.order_id").alias("earlier"))
    ),
    "united_by_name": lambda f: f.customers.select("customer_id", "name").unionByName(
        f.orders.select(F.col("region").alias("name"), "customer_id")
    ),
    "deduplicated": lambda f: f.orders.dropDuplicates(["customer_id"]).select(
        "customer_id", "order_id"
    ),
    "windowed": lambda f: f.orders.select(
        "order_id",
        F.sum("amount").over(latest_first()).alias("running"),
        F.lag("amount").over(latest_first()).alias("next_amount"),
        F.rank().over(latest_first()).alias("place"),
    ),
    "rolled_up": lambda f: f.orders.rollup("region", "dt").agg(F.sum("amount").alias("total")),
    "cubed": lambda f: f.orders.cube("region").agg(F.max("amount").alias("most")),
    "pivoted": lambda f: f.orders.groupBy("dt").pivot("region", ["eu", "us"]).sum("amount"),
    "exploded": lambda f: f.profiles.select("customer_id", F.explode("tags").alias("tag")),
    "exploded_map": lambda f: f.profiles.select("customer_id", F.explode("attributes")),
    "nested": lambda f: f.profiles.select(
        F.col("address.city").alias("city"),
        F.struct("customer_id", "address.geo.lat").alias("place"),
    ),
    "field_replaced": lambda f: f.profiles.select(
        F.col("address").withField("city", F.upper("address.city")).alias("address")
    ),
    "cases": lambda f: f.orders.select(
        "order_id",
        F.when(F.col("region") == "eu", F.col("amount")).otherwise(F.lit(0.0)).alias("eu_amount"),
    ),
    "literals": lambda f: f.orders.select(
        "order_id", F.lit("web").alias("channel"), F.current_date().alias("loaded")
    ),
    "masked": lambda f: f.customers.select("customer_id", F.sha2("email", 256).alias("mail_hash")),
    "python_column": lambda f: f.orders.select("order_id", halved("amount").alias("half")),
    "python_filter": lambda f: f.orders.where(halved("amount") > 5).select("order_id", "amount"),
    "made_here": lambda f: f.spark.createDataFrame([(1, "one")], "id long, label string"),
    "made_here_joined": lambda f: f.orders.join(
        F.broadcast(f.spark.createDataFrame([("eu", "Europe")], "region string, title string")),
        "region",
    ).select("order_id", "title"),
    "through_rdd": lambda f: f.spark.createDataFrame(
        f.customers.select("customer_id", "name").rdd, "customer_id long, name string"
    ),
    "ranged": lambda f: f.spark.range(3).select("id", (F.col("id") * 2).alias("doubled")),
    "sorted_and_cut": lambda f: f.orders.orderBy(F.desc("amount")).limit(3).select("order_id"),
    "cached": lambda f: f.customers.select("customer_id", F.upper("name").alias("loud")).cache(),
    "viewed": lambda f: (
        f.customers.select("customer_id", "segment").createOrReplaceTempView("segments")
        or f.spark.table("segments").select(F.lower("segment").alias("segment"))
    ),
    "sampled": lambda f: f.orders.sample(0.5, seed=7).select("order_id"),
}


def main(lake: str) -> None:
    """Write what each frame has."""
    spark = SparkSession.builder.getOrCreate()
    frames = Frames(spark, lake)
    for name, frame in FRAMES.items():
        frame(frames).write.mode("overwrite").parquet(f"{lake}/frames/{name}")


if __name__ == "__main__":
    main(sys.argv[1])
