"""Commands on Iceberg tables, one kind for each table: row-level ones of both kinds, and SELECTs.

What it is for: columns of MERGE and UPDATE that the listener gets wrong, copy-on-write and
merge-on-read, subqueries in their conditions, and tables that are replaced.

Truth
  inputs         orders and customers, both as a whole
  outputs        iceberg/shop/replaced, by CREATE OR REPLACE TABLE AS SELECT
                 iceberg/shop/copied, created, updated, rows deleted: files are written again
                 iceberg/shop/marked, created, merged into, updated, rows deleted: rows are marked
                 iceberg/shop/days, partitioned by dt: 2024-05-05 and 2024-05-06 inserted,
                 2024-05-06 overwritten
  columns        see tests/golden/lineage/observed/iceberg_commands.txt
"""

import sys

from pyspark.sql import SparkSession

COMMANDS = """
    CREATE TABLE lakehouse.shop.replaced USING iceberg AS SELECT order_id, region FROM orders;
    CREATE OR REPLACE TABLE lakehouse.shop.replaced USING iceberg AS
        SELECT o.order_id, upper(c.name) AS name
        FROM orders o JOIN customers c ON o.customer_id = c.customer_id;

    CREATE TABLE lakehouse.shop.copied USING iceberg AS
        SELECT order_id, customer_id, amount FROM orders;
    UPDATE lakehouse.shop.copied SET amount = amount * order_id
        WHERE customer_id IN (SELECT customer_id FROM customers WHERE segment = 'private');
    DELETE FROM lakehouse.shop.copied WHERE order_id > 4;

    CREATE TABLE lakehouse.shop.marked (customer_id bigint, note string) USING iceberg
        TBLPROPERTIES ('format-version' = '2', 'write.merge.mode' = 'merge-on-read',
            'write.update.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read');
    INSERT INTO lakehouse.shop.marked SELECT customer_id, region FROM orders WHERE customer_id < 3;
    MERGE INTO lakehouse.shop.marked AS t USING customers AS c ON t.customer_id = c.customer_id
        WHEN MATCHED AND c.segment = 'private' THEN UPDATE SET note = concat(t.note, c.name)
        WHEN NOT MATCHED THEN INSERT (customer_id, note) VALUES (c.customer_id, c.email);
    UPDATE lakehouse.shop.marked SET note = upper(note) WHERE customer_id = 2;
    DELETE FROM lakehouse.shop.marked WHERE customer_id = 3;

    CREATE TABLE lakehouse.shop.days (order_id bigint, amount double, dt string) USING iceberg
        PARTITIONED BY (dt);
    INSERT INTO lakehouse.shop.days SELECT order_id, amount, dt FROM orders WHERE dt < '2024-05-07';
    INSERT OVERWRITE lakehouse.shop.days
        SELECT order_id, -amount, dt FROM orders WHERE dt = '2024-05-06'
"""


def main(lake: str) -> None:
    """Run each command, on a table of its own."""
    spark = SparkSession.builder.getOrCreate()
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    for name in ("orders", "customers"):
        spark.read.parquet(f"{lake}/{name}").createOrReplaceTempView(name)
    for command in COMMANDS.split(";"):
        spark.sql(command)


if __name__ == "__main__":
    main(sys.argv[1])
