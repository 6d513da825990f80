"""What the listener does not report: reads that end in the driver, and what a skipped write is.

What it is for: the observer sees each of these queries, and the listener few of them. In the end
the job raises, so all of it is the lineage of a failed try.

Truth
  inputs         rates (month=2024-05), customers, ledger_path, ledger_table,
                 sales_option (dt=2024-05-03), sales_session (dt=2024-05-04), sales_static (all),
                 orders (dt=2024-05-06 and dt=2024-05-07), profiles, sales_append (all)
  intermediates  none
  outputs        sales_static, joined and kept, each as a whole
  columns        joined.order_id <- orders.order_id (identity)
                 kept.id <- orders.order_id (identity), and not orders.customer_id
"""

import sys

from pyspark.sql import SparkSession, functions

LAKE = sys.argv[1]
TODAY = "dt = '2024-05-06'"


def main() -> None:
    """Look at this and that, as jobs do before they write, and fail."""
    spark = SparkSession.builder.getOrCreate()

    def folder(name):
        return spark.read.parquet(f"{LAKE}/{name}")

    # A count of one partition.
    folder("rates").where("month = '2024-05'").count()

    # A table of settings that is collected.
    settings = {row.customer_id: row.name for row in folder("customers").collect()}
    assert settings[1] == "Ada"

    folder("ledger_path").foreach(print)
    folder("ledger_table").show()

    # Cached, and only counted.
    cached = folder("sales_option").where("dt = '2024-05-03'").cache()
    cached.count()
    cached.agg(functions.sum("amount")).collect()

    # A table of the catalog.
    spark.sql(
        "create table sessions (region string, amount double, dt string) using parquet "
        f"partitioned by (dt) location '{LAKE}/sales_session'"
    )
    spark.sql("msck repair table sessions")
    spark.sql("select count(*) from sessions where dt = '2024-05-04'").collect()

    # The old content is collected, and then overwritten.
    [old] = folder("sales_static").agg(functions.max("amount").alias("amount")).collect()
    new = spark.createDataFrame([("eu", old.amount * 2)], "region string, amount double")
    new.write.mode("overwrite").parquet(f"{LAKE}/sales_static")

    # A table that is broadcast, and one that only a scalar subquery reads.
    folder("orders").createOrReplaceTempView("orders")
    folder("profiles").createOrReplaceTempView("profiles")
    folder("sales_append").createOrReplaceTempView("sales")
    joined = spark.sql(
        "select o.order_id, p.tags, (select max(dt) from sales) as latest from orders o "
        f"join profiles p on o.customer_id = p.customer_id where o.{TODAY}"
    )
    joined.write.mode("overwrite").parquet(f"{LAKE}/joined")

    # Written once; the second write is skipped, and what it would read is not read.
    orders, kept = folder("orders"), f"{LAKE}/kept"
    orders.where(TODAY).selectExpr("order_id as id").write.parquet(kept)
    yesterday = orders.where("dt = '2024-05-05'").selectExpr("customer_id as id")
    yesterday.write.mode("ignore").parquet(kept)

    # A query that fails in a task, after it has read.
    refused = functions.raise_error(functions.lit("no"))
    orders.where("dt = '2024-05-07'").select(refused).collect()


if __name__ == "__main__":
    main()
