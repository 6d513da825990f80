"""Report a day's departure delays by carrier, with the mistake of a day that examples need.

The job was once started the morning after, when "yesterday" was the day to report. Now it is given
the day itself, and still subtracts one: nothing fails, and every partition has another day.
"""

import argparse
from datetime import date, timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf


def main() -> None:
    """Read a day's flights and write the day's partition of the report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--flights", required=True, help="flights, partitioned by flight_date")
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="YYYY-MM-DD")
    parser.add_argument("--output", required=True, help="the report, partitioned by flight_date")
    arguments = parser.parse_args()

    spark = SparkSession.builder.appName("carrier_delays").getOrCreate()
    day = arguments.date - timedelta(days=1)  # the mistake
    flights = spark.read.parquet(arguments.flights).where(sf.col("flight_date") == day)
    report = flights.groupBy("flight_date", "carrier").agg(
        sf.count("flight").alias("flights"),
        sf.round(sf.avg("dep_delay"), 1).alias("avg_dep_delay"),
    )
    (
        report.coalesce(1)
        .write.partitionBy("flight_date")
        .option("partitionOverwriteMode", "dynamic")
        .mode("overwrite")
        .parquet(arguments.output)
    )
    spark.stop()


if __name__ == "__main__":
    main()
