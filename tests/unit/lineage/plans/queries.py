"""Queries whose plans are recorded: constructions that the recorded applications have not.

``python -m tests.unit.lineage.plans.queries`` runs them in Spark and writes ``queries.ndjson``. Of
the plans only what is looked at is kept. The plans of MERGE, UPDATE and DELETE in ``commands.json``
were recorded by the observer, from Delta 4.0 and Iceberg 1.10 on Spark 4.0.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.applications.sql_queries import VIEWS

QUERIES_FILE = Path(__file__).with_name("queries.ndjson")
_UNUSED = {
    *("metadata", "qualifier", "nullable", "jvmId", "product-class", "nonInheritableMetadataKeys"),
    *("explicitMetadata", "desc", "hint", "timeZoneId", "evalMode", "isStreaming", "mode", "data"),
    *("resultId", "options", "identifier", "func", "isDistinct", "udfDeterministic"),
    *("originStats", "originConstraints", "outputPartitioning", "outputOrdering", "elementSchema"),
    *("ignoreNulls", "mutableAggBufferOffset", "inputAggBufferOffset", "failOnError"),
}

QUERIES = {
    "exists in SELECT": """
        SELECT name, EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id
                             AND o.dt > '1') AS buys FROM customers c""",
    "IN in SELECT": """
        SELECT name, customer_id IN (SELECT customer_id FROM orders WHERE amount > 0) AS buys
        FROM customers""",
    "EXISTS or a filter": """
        SELECT name FROM customers c WHERE segment = 'x'
        OR EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id)""",
    "two columns IN": """
        SELECT name FROM customers
        WHERE (customer_id, segment) IN (SELECT customer_id, region FROM orders)""",
    "subquery in a subquery": """
        SELECT name FROM customers WHERE customer_id IN (
            SELECT customer_id FROM orders WHERE amount > (SELECT avg(rate) FROM rates))""",
    "scalar subqueries": """
        SELECT order_id,
            (SELECT max(name) FROM customers c WHERE c.customer_id = o.customer_id) AS n,
            (SELECT max(month) FROM rates WHERE currency = 'EUR') AS latest
        FROM orders o""",
    "common table in a subquery": """
        WITH latest AS (SELECT max(month) m FROM rates WHERE rate > 0)
        SELECT order_id FROM orders WHERE dt > (SELECT m FROM latest)""",
    "recursion": """
        WITH RECURSIVE t(n, s) AS (
            SELECT customer_id, name FROM customers UNION ALL SELECT n + 1, s FROM t WHERE n < 5)
        SELECT n, s FROM t""",
    "lateral": """
        SELECT c.name, t.total FROM customers c,
        LATERAL (SELECT sum(amount) total FROM orders o WHERE o.customer_id = c.customer_id) t""",
    "lateral alias": "SELECT amount * 2 AS d, d + 1 AS e FROM orders",
    "EXCEPT ALL": "SELECT customer_id FROM customers EXCEPT ALL SELECT customer_id FROM orders",
    "INTERSECT ALL": """
        SELECT name, segment FROM customers INTERSECT ALL SELECT region, dt FROM orders""",
    "union of types": "SELECT customer_id a FROM customers UNION SELECT amount FROM orders",
    "union with a literal": "SELECT name a FROM customers UNION ALL SELECT 'x'",
    "FILTER clauses": """
        SELECT sum(amount) FILTER (WHERE dt > '2024') s, count(*) FILTER (WHERE region = 'eu') c
        FROM orders""",
    "grouping ids": """
        SELECT region, grouping_id() g, grouping(region) r, sum(amount) s, count(*) n
        FROM orders GROUP BY CUBE (region, dt)""",
    "counts": "SELECT count(*) n, count(1) m, count(order_id) c FROM orders",
    "no columns": """
        SELECT rand() r, current_date() d, uuid() u, 1 AS one, concat('a', 'b') ab, 2 + 3 five
        FROM orders""",
    "values": "SELECT * FROM VALUES (1, 'a') t(x, y)",
    "range": "SELECT id, id * 2 d FROM range(10)",
    "windows": """
        SELECT ntile(4) OVER (ORDER BY amount) nt, first_value(dt) OVER w f,
               count(*) OVER (PARTITION BY region) n
        FROM orders WINDOW w AS (PARTITION BY customer_id ORDER BY dt)""",
    "window over an aggregate": """
        SELECT sum(sum(amount)) OVER (ORDER BY region) s FROM orders GROUP BY region""",
    "generators": """
        SELECT customer_id, pos, tag, k, v FROM profiles
        LATERAL VIEW OUTER posexplode(tags) AS pos, tag LATERAL VIEW explode(attributes) AS k, v""",
    "stack": "SELECT customer_id, stack(2, name, email) AS (a) FROM customers",
    "masks": """
        SELECT crc32(email) a, hash(email) b, xxhash64(email) c, sha1(email) d, mask(email) e,
               count(email) OVER () f, md5(concat(name, email)) g FROM customers""",
    "nulls": """
        SELECT nvl(region, dt) a, nvl2(region, dt, amount) b, nullif(region, dt) c,
               coalesce(region, dt, 'x') d, decode(region, 'a', dt, 'z') e FROM orders""",
    "nested choices": """
        SELECT CASE WHEN amount > 1 THEN CASE WHEN region = 'x' THEN dt END
                    ELSE upper(region) END a,
               sum(CASE WHEN region = 'eu' THEN amount END) OVER (PARTITION BY dt) b FROM orders""",
    "pivot": """
        SELECT * FROM (SELECT dt, region, amount, order_id FROM orders)
        PIVOT (sum(amount) AS s, max(order_id) AS m FOR region IN ('eu' AS eu))""",
    "unpivot": """
        SELECT * FROM customers UNPIVOT (v FOR nm IN (name AS a, email AS b))""",
    "natural full join": "SELECT customer_id, name FROM orders NATURAL FULL JOIN customers",
    "HAVING a subquery": """
        SELECT region, sum(amount) s FROM orders GROUP BY region
        HAVING sum(amount) > (SELECT max(rate) FROM rates)""",
    "sorts and limits": """
        SELECT order_id FROM (SELECT * FROM orders DISTRIBUTE BY dt SORT BY region)
        ORDER BY order_id LIMIT 3 OFFSET 1""",
    "lambdas": "SELECT filter(tags, t -> t > 'a') a FROM profiles",
    "a script": "SELECT TRANSFORM (order_id, region) USING 'cat' AS (a STRING) FROM orders",
    "casts": """
        SELECT cast(order_id AS bigint) same, cast(order_id AS string) other FROM orders""",
}


def frames(spark: Any, lake: str) -> dict[str, Any]:
    """Give what only DataFrames have."""
    import pandas
    from pyspark.sql import functions as f

    orders, customers = spark.table("orders"), spark.table("customers")
    few = orders.select("order_id", "amount")
    score = f.udf(lambda amount: amount, "double")
    nothing = f.udf(lambda: 1.0, "double")

    def mean(amount: pandas.Series) -> float:
        return amount.mean()

    mean.__annotations__ = {"amount": pandas.Series, "return": float}
    average = f.pandas_udf(mean, "double")

    class Table:
        def eval(self, _: Any) -> Any:
            yield 1, "a"

    spark.udtf.register("table_of", f.udtf(Table, returnType="n int, m string"))
    return {
        "Python": orders.select(
            score("amount").alias("s"), (score(score("amount")) + f.col("order_id")).alias("t")
        ),
        "Python of nothing": orders.select(nothing().alias("s")),
        "Python aggregate": orders.groupBy("region").agg(average("amount").alias("m")),
        "Python table": spark.sql("SELECT t.* FROM orders o, LATERAL table_of(o.amount) t"),
        "mapInPandas": few.mapInPandas(lambda parts: parts, few.schema),
        "applyInPandas": few.groupBy("order_id").applyInPandas(lambda part: part, few.schema),
        "cogroup": few.groupBy("order_id")
        .cogroup(customers.select("customer_id").groupBy("customer_id"))
        .applyInPandas(lambda a, _: a, "a long"),
        "drop_duplicates": orders.select("region", "dt", "amount").dropDuplicates(["region"]),
        "exceptAll": customers.select("customer_id").exceptAll(orders.select("customer_id")),
        "missing columns": customers.select("customer_id", "name").unionByName(
            orders.select("customer_id", "region"), allowMissingColumns=True
        ),
        "melt": customers.melt(["customer_id"], ["name", "email"], "kind", "value"),
        "semi join": few.join(orders.select("order_id", "dt"), "order_id", "left_semi"),
        "metadata": spark.read.parquet(f"{lake}/orders").select("_metadata.file_path"),
        "checkpoint": few.localCheckpoint(),
        "field": spark.table("profiles").select(
            f.col("address").withField("city", f.upper("customer_id")).alias("a")
        ),
        "observed": orders.observe("seen", f.count("*").alias("n")).select("order_id"),
    }


def used(value: Any) -> Any:
    """Leave out of a plan what is not looked at."""
    if isinstance(value, list):
        return [used(item) for item in value]
    if isinstance(value, dict):
        return {key: used(item) for key, item in value.items() if key not in _UNUSED}
    return value


def main() -> None:
    """Record the plans."""
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    )
    with tempfile.TemporaryDirectory() as lake:
        for view, schema in VIEWS.items():
            spark.createDataFrame([], schema).write.parquet(f"{lake}/{view}")
            spark.read.schema(schema).parquet(f"{lake}/{view}").createOrReplaceTempView(view)
        found = {name: spark.sql(query) for name, query in QUERIES.items()} | frames(spark, lake)
        lines = []
        for name, frame in found.items():
            plan = json.loads(frame._jdf.queryExecution().analyzed().toJSON())
            lines.append(json.dumps({"name": name, "plan": used(plan)}, separators=(",", ":")))
        QUERIES_FILE.write_text("\n".join(lines) + "\n")
        spark.stop()


if __name__ == "__main__":
    main()
