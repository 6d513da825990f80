"""Columns whose sources the listener does not report: of Python, of ROLLUP, of no column at all.

Each output is a case. `TRUTH` has what its columns are made of, for those that the listener loses;
the others it reports itself.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.types import DoubleType

lake = sys.argv[1]
spark = SparkSession.builder.getOrCreate()


@f.udf(DoubleType())
def score(amount: float) -> float:
    return amount / 100


@f.udf(DoubleType())
def mixed(amount: float, customer: int) -> float:
    return amount * customer


def write(frame, name: str) -> None:
    frame.coalesce(1).write.mode("overwrite").parquet(f"{lake}/{name}")


orders = spark.read.parquet(f"{lake}/orders")
customers = spark.read.parquet(f"{lake}/customers")

write(orders.select("order_id", score("amount").alias("score")), "plain")
write(orders.select((score("amount") + f.col("customer_id")).alias("shifted")), "inside")
joined = orders.join(customers, "customer_id")
write(joined.select(mixed(score("amount"), "customer_id").alias("a b#1"), "name"), "nested")
write(orders.groupBy("region").agg(f.sum(score("amount")).alias("total")), "summed")
write(spark.read.parquet(f"{lake}/plain").select((f.col("score") * 2).alias("twice")), "chained")
write(orders.unionByName(orders.withColumn("amount", score("amount"))), "united")

cached = orders.withColumn("score", score("amount")).cache()
cached.count()
write(cached.select("region", f.col("score").alias("kept")), "cached")

orders.createOrReplaceTempView("orders")
spark.udf.register("score_sql", lambda amount: amount / 100, DoubleType())
spark.sql(f"""
    CREATE TABLE sql_scores USING parquet LOCATION '{lake}/sql_scores' AS
    SELECT order_id, score_sql(amount) AS score FROM orders
""")
write(
    orders.rollup("region").agg(f.sum("amount").alias("amount"), f.count("*").alias("n")), "rollup"
)
ranked = Window.partitionBy("region").orderBy("amount")
write(
    orders.select(
        "order_id",
        f.lit("x").alias("fixed"),
        f.rand(1).alias("random"),
        f.row_number().over(ranked).alias("rank"),
    ),
    "literals",
)
made = spark.createDataFrame([(1, 2.0)], "id long, amount double")
write(made.select("id", score("amount").alias("score")), "created")
write(spark.range(3), "numbers")

if spark.conf.get("spark.sql.catalog.lakehouse", None):
    scored = orders.select("order_id", score("amount").alias("score"))
    scored.writeTo("lakehouse.db.made").create()
    scored.writeTo("lakehouse.db.made").append()
    spark.sql("CREATE TABLE lakehouse.db.filled (order_id bigint, score double) USING iceberg")
    scored.writeTo("lakehouse.db.filled").append()

try:
    import pandas  # noqa: TC002  (Spark reads the types of functions at run time)
    import pyarrow  # noqa: F401
except ImportError:
    pass
else:

    @f.pandas_udf("double")
    def batch(amount: pandas.Series, customer: pandas.Series) -> pandas.Series:
        return amount * customer

    @f.pandas_udf("double")
    def mean(amount: pandas.Series) -> float:
        return amount.mean()

    write(orders.select(batch("amount", "customer_id").alias("both")), "pandas")
    write(orders.groupBy("region").agg(mean("amount").alias("mean")), "pandas_grouped")
    few = orders.select("order_id", "amount")
    write(few.mapInPandas(lambda frames: frames, few.schema), "pandas_rows")
    write(few.groupBy("order_id").applyInPandas(lambda p: p, few.schema), "pandas_groups")
