"""The application that ``doctor --spark-submit`` runs; it sums up a partition of a small table."""


def main(folder):
    """Read one day of the table ``orders`` below a folder; write ``totals`` next to the table.

    :param folder: the URL or path of the folder that has ``orders``
    """
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    orders = spark.read.option("header", True).schema("amount INT, dt DATE").csv(folder + "/orders")
    totals = orders.where("dt = '2024-05-06'").groupBy("dt").agg({"amount": "sum"})
    totals.withColumnRenamed("sum(amount)", "total").write.parquet(folder + "/totals")
    # The driver's user owns this folder, so the worker might not be allowed to remove it. The JVM
    # removes it when it ends: until then the observer looks whether it is there.
    written = spark._jvm.org.apache.hadoop.fs.Path(folder + "/totals")
    written.getFileSystem(spark._jsc.hadoopConfiguration()).deleteOnExit(written)
    spark.stop()


if __name__ == "__main__":
    import sys

    main(sys.argv[1])
