"""Five ways to write partitions, each read back as a whole and written to another place.

What it is for: distinguishing a write that replaced the dataset from one that left older partitions
in place. Only the first of the five is a full overwrite; after the other four the read back sees
days that an earlier application wrote, so a claim "written by this application before it was read,
hence no input" would be wrong. Of the dynamic overwrite by option the events show nothing at all:
not the option, and no sort, because its partition column is a literal.

Truth
  inputs         orders (dt=2024-05-06; by predicate, as its root is read)
                 sales_append, sales_static, sales_option, sales_session: read as a whole, which is
                 2024-05-06, and 2024-05-03 and 2024-05-04 that this application did not write
  intermediates  sales_full: everything in it comes from this application
  outputs        sales_full: dt=2024-05-06/region=eu and dt=2024-05-06/region=us
                 sales_append, sales_static, sales_option, sales_session: dt=2024-05-06 only
                 copies/full, copies/append, copies/static, copies/option, copies/session
  columns        sales_*.amount <- orders.amount, sales_*.region <- orders.region (identity)
                 sales_*.dt <- orders.dt (identity); not in sales_static and sales_option, where it
                 is a literal
                 copies/*.<column> <- sales_*.<column> (identity) where sales_* is an input, and
                 in any case <- orders.<column> through what was written
"""

import sys

from pyspark.sql import DataFrame, SparkSession, functions

DAY = "2024-05-06"
SALES = "region string, amount double, dt string"


def copy(sales: DataFrame, path: str) -> None:
    """Write all of `sales` to another folder."""
    sales.select("dt", "region", "amount").write.mode("overwrite").parquet(path)


def main(lake: str) -> None:
    """Write the day's sales in five ways; copy each dataset as a whole afterwards."""
    spark = SparkSession.builder.getOrCreate()
    sales = spark.read.schema(SALES).parquet(f"{lake}/orders").where(f"dt = '{DAY}'")

    sales.write.mode("overwrite").partitionBy("dt", "region").parquet(f"{lake}/sales_full")
    copy(spark.read.schema(SALES).parquet(f"{lake}/sales_full"), f"{lake}/copies/full")

    sales.write.mode("append").partitionBy("dt").parquet(f"{lake}/sales_append")
    copy(spark.read.schema(SALES).parquet(f"{lake}/sales_append"), f"{lake}/copies/append")

    spark.sql(
        "CREATE TABLE sales_static (region STRING, amount DOUBLE, dt STRING) USING parquet "
        f"PARTITIONED BY (dt) LOCATION '{lake}/sales_static'"
    )
    spark.sql("MSCK REPAIR TABLE sales_static")
    sales.createOrReplaceTempView("sales")
    spark.sql(
        "INSERT OVERWRITE TABLE sales_static PARTITION (dt = '2024-05-06') "
        "SELECT region, amount FROM sales"
    )
    copy(spark.table("sales_static"), f"{lake}/copies/static")

    day = sales.withColumn("dt", functions.lit(DAY))
    dynamic = day.write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
    dynamic.partitionBy("dt").parquet(f"{lake}/sales_option")
    copy(spark.read.schema(SALES).parquet(f"{lake}/sales_option"), f"{lake}/copies/option")

    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    sales.write.mode("overwrite").partitionBy("dt").parquet(f"{lake}/sales_session")
    copy(spark.read.schema(SALES).parquet(f"{lake}/sales_session"), f"{lake}/copies/session")


if __name__ == "__main__":
    main(sys.argv[1])
