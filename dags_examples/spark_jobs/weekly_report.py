"""Report a week: the flights, cancellations and delays of each carrier at each origin."""

import argparse
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf


def main() -> None:
    """Read the week's flights and write the week's report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flights", required=True, help="flights, partitioned by flight_date")
    parser.add_argument("--first", required=True, type=date.fromisoformat, help="YYYY-MM-DD")
    parser.add_argument("--last", required=True, type=date.fromisoformat, help="YYYY-MM-DD")
    parser.add_argument("--output", required=True, help="the week's partition of the report")
    arguments = parser.parse_args()

    spark = SparkSession.builder.appName("weekly_report").getOrCreate()

    flights = spark.read.parquet(arguments.flights)
    week = flights.where(sf.col("flight_date").between(arguments.first, arguments.last))
    summarise(week).coalesce(1).write.mode("overwrite").parquet(arguments.output)

    spark.stop()


def summarise(flights: DataFrame) -> DataFrame:
    """Return one row for each carrier and origin; a flight that never departed was cancelled."""
    return flights.groupBy("carrier", "origin").agg(
        sf.count("flight").alias("flights"),
        sf.count_if(sf.col("dep_time").isNull()).alias("cancelled"),
        sf.round(sf.avg("dep_delay"), 1).alias("avg_dep_delay"),
        sf.round(sf.avg("arr_delay"), 1).alias("avg_arr_delay"),
        sf.sum("distance").alias("miles"),
        sf.countDistinct("dest").alias("destinations"),
    )


if __name__ == "__main__":
    main()
