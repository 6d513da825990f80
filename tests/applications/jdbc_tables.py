"""Reads tables of a database in every way that Spark has, and writes to it.

What it is for: a table behind JDBC has an identity of its own, however its URL is spelt; a query
in the place of a table reads the tables in the query. The database is Derby, which Spark brings.

Truth
  inputs         APP.CLIENTS and APP.COUNTRIES of the database, orders (dt=2024-05-06)
  intermediates  APP.REGIONS, overwritten and read back
  outputs        jdbc/whole, jdbc/parts, jdbc/query, jdbc/subquery, jdbc/filtered, jdbc/joined,
                 jdbc/read_back, APP.REGIONS, APP.ENTRIES
  columns        in tests/golden/lineage/jdbc_tables.txt
"""

import sys

from pyspark.sql import DataFrame, SparkSession, functions


def main(lake: str) -> None:
    """Read in full, in parts and by queries; write; read back."""
    spark = SparkSession.builder.getOrCreate()
    url = f"jdbc:derby:{lake}/shop"
    driver = {"driver": "org.apache.derby.jdbc.EmbeddedDriver"}

    def query(text: str) -> DataFrame:
        return spark.read.jdbc(url, f"({text}) asked", properties=driver)

    def write(frame: DataFrame, name: str) -> None:
        frame.write.mode("overwrite").parquet(f"{lake}/jdbc/{name}")

    clients = spark.read.jdbc(url, "CLIENTS", properties=driver)
    write(clients.select("ID", "NAME"), "whole")
    write(
        spark.read.jdbc(
            f"{url};create=false",
            "APP.CLIENTS",
            column="ID",
            lowerBound=1,
            upperBound=3,
            numPartitions=2,
            properties=driver,
        ).select(functions.upper("NAME").alias("loud")),
        "parts",
    )
    write(
        spark.read.format("jdbc")
        .options(**driver, url=url, query="SELECT ID, COUNTRY AS LAND FROM CLIENTS WHERE ID > 1")
        .load(),
        "query",
    )
    write(
        query("SELECT c.NAME, o.TITLE FROM CLIENTS c JOIN COUNTRIES o ON c.COUNTRY = o.CODE"),
        "subquery",
    )
    write(clients.where("COUNTRY = 'de'").select("NAME"), "filtered")
    orders = spark.read.schema("order_id long, customer_id long, amount double").parquet(
        f"{lake}/orders/dt=2024-05-06"
    )
    joined = orders.join(clients, orders.customer_id == clients.ID)
    write(joined.groupBy("COUNTRY").agg(functions.sum("amount").alias("total")), "joined")

    regions = clients.select(functions.col("COUNTRY").alias("REGION"), "ID")
    regions.write.jdbc(url, "REGIONS", mode="overwrite", properties=driver)
    write(spark.read.jdbc(url, "REGIONS", properties=driver).select("REGION"), "read_back")
    entries = orders.select(functions.col("order_id").alias("ID"), functions.col("amount"))
    entries.write.jdbc(url, "ENTRIES", mode="append", properties=driver)


if __name__ == "__main__":
    main(sys.argv[1])
