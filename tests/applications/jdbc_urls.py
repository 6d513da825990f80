"""One database under several forms of its URL, written by one and read by the others.

What it is for: a table has one identity, whatever settings and credentials a URL has, and a URL's
credentials are nobody's business. The database is H2.

Truth
  inputs         customers
  intermediates  PUBLIC.PEOPLE of the database, overwritten and read back
  outputs        people/plain, people/moded, people/signed, people/asked, PUBLIC.PEOPLE
  columns        people/*.NAME <- customers.name, through PEOPLE.NAME
                 people/asked.NAME <- customers.name (transformation)
"""

import sys

from pyspark.sql import SparkSession, functions


def main(lake: str) -> None:
    """Write people, read them back by each URL."""
    spark = SparkSession.builder.getOrCreate()
    driver = {"driver": "org.h2.Driver"}
    plain = f"jdbc:h2:{lake}/people_db"
    signed = f"jdbc:h2:file:{lake}/people_db;USER=clerk;PASSWORD=hidden-word"

    customers = spark.read.schema("customer_id long, name string").parquet(f"{lake}/customers")
    people = customers.select(
        functions.col("customer_id").alias("ID"), functions.col("name").alias("NAME")
    )
    people.write.jdbc(signed, "PUBLIC.PEOPLE", mode="overwrite", properties=driver)

    def write(name: str, url: str, **options: str) -> None:
        reader = spark.read.format("jdbc").options(url=url, **driver, **options)
        reader.load().select("NAME").write.mode("overwrite").parquet(f"{lake}/people/{name}")

    clerk = {"user": "clerk", "password": "hidden-word"}
    write("signed", signed, dbtable="PUBLIC.PEOPLE")
    write("plain", plain, dbtable="PUBLIC.PEOPLE", **clerk)
    write("moded", f"{plain};MODE=PostgreSQL", dbtable="PUBLIC.PEOPLE", **clerk)
    write("asked", plain, query="SELECT UPPER(NAME) AS NAME FROM PUBLIC.PEOPLE", **clerk)


if __name__ == "__main__":
    main(sys.argv[1])
