"""Writes columns that are copied, calculated, or changed in so many steps that texts explode.

What it is for: the listener's own descriptions put the text of a step in place of the column in
the next one. A step that uses its column thrice triples the text, and fourteen of them would take
all memory of the driver. So the descriptions are off, and come from Spark's plan.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, when

STEPS = 14


def main(lake: str) -> None:
    """Write three tables."""
    spark = SparkSession.builder.getOrCreate()
    orders = spark.read.parquet(f"{lake}/orders").where("dt = '2024-05-06'")
    orders.select("order_id", "region").write.partitionBy("region").parquet(f"{lake}/copied")

    doubled = orders.where("amount > 0").selectExpr("amount * 2 AS twice", "region")
    doubled.write.partitionBy("region").parquet(f"{lake}/doubled")

    capped, amount = orders.select("amount"), col("amount")
    for step in range(STEPS):
        change = when(amount > step, amount - step).otherwise(amount)
        capped = capped.withColumn("amount", change)
    capped.write.parquet(f"{lake}/capped")


if __name__ == "__main__":
    main(sys.argv[1])
