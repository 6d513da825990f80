"""What ``doctor --spark-submit`` runs: reads a partition of a small table, writes its sum."""


def main(folder):
    """Read ``orders`` below a folder, of one day; write ``totals`` next to it."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    orders = spark.read.option("header", True).schema("amount INT, dt DATE").csv(folder + "/orders")
    totals = orders.where("dt = '2024-05-06'").groupBy("dt").agg({"amount": "sum"})
    totals.withColumnRenamed("sum(amount)", "total").write.parquet(folder + "/totals")
    spark.stop()


if __name__ == "__main__":
    import sys

    main(sys.argv[1])
