"""Two stagings that share an input, united into one output.

What it is for: composing columns over branches; one source column reaches the output by two ways.

Truth
  inputs         orders (dt=2024-05-06), customers
  intermediates  staging/buyers, staging/members
  outputs        audience, as a whole
  columns        audience.name <- customers.name (identity by buyers, transformation by members)
                 audience.label <- orders.region (identity by buyers)
                 audience.label <- customers.segment (identity by members)
                 by buyers, both depend on orders.customer_id and customers.customer_id (join) and
                 on orders.amount (filter)
"""

import sys

from pyspark.sql import SparkSession, functions


def main(lake: str) -> None:
    """Stage those who bought and those who are registered, then unite them."""
    spark = SparkSession.builder.getOrCreate()
    customers = spark.read.schema("customer_id long, name string, segment string").parquet(
        f"{lake}/customers"
    )

    orders = spark.read.schema("customer_id long, amount double, region string").parquet(
        f"{lake}/orders/dt=2024-05-06"
    )
    buyers = orders.where("amount > 0").join(customers, "customer_id")
    buyers = buyers.select("name", functions.col("region").alias("label"))
    buyers.write.mode("overwrite").parquet(f"{lake}/staging/buyers")

    members = customers.select(
        functions.upper("name").alias("name"), functions.col("segment").alias("label")
    )
    members.write.mode("overwrite").parquet(f"{lake}/staging/members")

    staged = "name string, label string"
    buyers = spark.read.schema(staged).parquet(f"{lake}/staging/buyers")
    members = spark.read.schema(staged).parquet(f"{lake}/staging/members")
    buyers.unionByName(members).write.mode("overwrite").parquet(f"{lake}/audience")


if __name__ == "__main__":
    main(sys.argv[1])
