"""Commands on Delta tables, one kind for each table: created, replaced, changed, emptied in part.

What it is for: the listener reports UPDATE and DELETE not at all, saveAsTable in overwrite mode and
createOrReplace without columns, and with Delta's extension no write of files that is planned
adaptively. Delta 3.3.2 cannot replace tables with Spark 3.5.9, where "saved" is only created.

Truth
  inputs         orders, as a whole for all but days, days_again and report
                 customers, as a whole
  outputs        warehouse/saved, by saveAsTable, overwritten: the last has customers' names
                 warehouse/replaced, by createOrReplace
                 warehouse/created, by CREATE TABLE AS SELECT, then updated, rows deleted
                 warehouse/merged, created, then merged into from customers
                 delta/days, partitioned by dt: all three written, 2024-05-06 replaced
                 warehouse/days_again, partitioned by dt: 2024-05-06 by overwritePartitions
                 report, files, from a grouping of orders of 2024-05-05
  columns        see tests/golden/lineage/observed/delta_commands.txt
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

MERGE = """
    MERGE INTO merged AS t USING customers AS c ON t.customer_id = c.customer_id
    WHEN MATCHED AND c.segment = 'private' THEN UPDATE SET note = concat(t.note, c.name)
    WHEN MATCHED THEN DELETE
    WHEN NOT MATCHED THEN INSERT (customer_id, note) VALUES (c.customer_id, c.email)
"""


def main(lake: str) -> None:
    """Run each command, on a table of its own."""
    spark = SparkSession.builder.getOrCreate()
    orders = spark.read.parquet(f"{lake}/orders")
    customers = spark.read.parquet(f"{lake}/customers")
    orders.createOrReplaceTempView("orders")
    customers.createOrReplaceTempView("customers")
    named = orders.join(customers, "customer_id").select("order_id", f.upper("name").alias("name"))

    orders.select("order_id", "region").write.format("delta").saveAsTable("saved")
    if not spark.version.startswith("3."):
        overwriting = named.write.format("delta").mode("overwrite")
        overwriting.option("overwriteSchema", "true").saveAsTable("saved")
        named.writeTo("replaced").using("delta").createOrReplace()

    spark.sql("CREATE TABLE created USING delta AS SELECT order_id, amount, region FROM orders")
    spark.sql("UPDATE created SET amount = amount * order_id WHERE region = 'eu'")
    spark.sql("DELETE FROM created WHERE order_id > 4")

    spark.sql("CREATE TABLE merged USING delta AS SELECT customer_id, region AS note FROM orders")
    spark.sql("DELETE FROM merged WHERE customer_id = 3")
    spark.sql(MERGE)

    by_day = orders.select("order_id", "amount", "dt")
    by_day.write.format("delta").partitionBy("dt").save(f"{lake}/delta/days")
    second = by_day.where("dt = '2024-05-06'")
    replacing = second.write.format("delta").mode("overwrite")
    replacing.option("replaceWhere", "dt = '2024-05-06'").save(f"{lake}/delta/days")
    by_day.writeTo("days_again").using("delta").partitionedBy(f.col("dt")).create()
    second.writeTo("days_again").overwritePartitions()

    report = orders.where("dt = '2024-05-05'").groupBy("region").agg(f.sum("amount").alias("total"))
    report.write.parquet(f"{lake}/report")


if __name__ == "__main__":
    main(sys.argv[1])
