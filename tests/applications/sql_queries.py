"""Fifty-eight queries in SQL, one output each, and tables that SQL statements write.

What it is for: what the listener reports of the columns of nearly every construction of SQL. The
queries are in ``sql_queries.sql``, where another reader of SQL finds them too.

Truth
  inputs         orders, customers, rates, profiles
  intermediates  none
  outputs        queries/<name> for each query
                 warehouse/by_ctas, warehouse/by_insert, warehouse/by_partition
  columns        in tests/golden/lineage/sql_queries.txt
"""

import re
import sys
from pathlib import Path

VIEWS = {
    "orders": "order_id long, customer_id long, amount double, region string, dt string",
    "customers": "customer_id long, name string, email string, segment string",
    "rates": "currency string, rate double, month string",
    "profiles": (
        "customer_id long, address struct<street:string,city:string,geo:struct<lat:double,"
        "lon:double>>, tags array<string>, attributes map<string,string>"
    ),
}
_QUERY = re.compile(r"^-- (\w+)\n(.*?);$", re.MULTILINE | re.DOTALL)
QUERIES = dict(_QUERY.findall(Path(__file__).with_suffix(".sql").read_text()))
STATEMENTS = {
    "by_ctas": (
        "CREATE TABLE by_ctas USING parquet AS "
        "WITH paid AS (SELECT * FROM orders WHERE amount > 0) "
        "SELECT region, sum(amount) AS total FROM paid GROUP BY region"
    ),
    "by_insert": "INSERT INTO by_insert SELECT name, segment FROM customers",
    "by_partition": (
        "INSERT OVERWRITE by_partition PARTITION (dt = '2024-05-06') "
        "SELECT order_id, amount FROM orders WHERE dt = '2024-05-06'"
    ),
}


def main(lake: str) -> None:
    """Write what each query gives, then run the statements that write tables."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    for view, schema in VIEWS.items():
        spark.read.schema(schema).parquet(f"{lake}/{view}").createOrReplaceTempView(view)
    for name, query in QUERIES.items():
        spark.sql(query).write.mode("overwrite").parquet(f"{lake}/queries/{name}")

    spark.sql("CREATE TABLE by_insert (label STRING, kind STRING) USING parquet")
    spark.sql(
        "CREATE TABLE by_partition (order_id BIGINT, amount DOUBLE, dt STRING) USING parquet "
        "PARTITIONED BY (dt)"
    )
    for statement in STATEMENTS.values():
        spark.sql(statement)


if __name__ == "__main__":
    main(sys.argv[1])
