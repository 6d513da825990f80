"""Report a day's departure delays by carrier, origin and manufacturer, with weather and seats.

Several actions in one application: the day's flights, each with the weather at its origin in the
hour of departure, go into a staging table; the report is then computed from the staging table and
the planes.
"""

import argparse
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf


def main() -> None:
    """Read the day's flights, weather and planes, and write the day's report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--flights", required=True, help="flights, partitioned by flight_date")
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="YYYY-MM-DD")
    parser.add_argument("--weather", required=True, help="the day's partition of the weather")
    parser.add_argument("--planes", required=True, help="planes")
    parser.add_argument("--staging", required=True, help="flights with their weather")
    parser.add_argument("--output", required=True, help="the day's partition of the report")
    arguments = parser.parse_args()

    spark = SparkSession.builder.appName("daily_delays").getOrCreate()

    flights = spark.read.parquet(arguments.flights).where(sf.col("flight_date") == arguments.date)
    weather = spark.read.parquet(arguments.weather)
    add_weather(flights, weather).write.mode("overwrite").parquet(arguments.staging)

    staged = spark.read.parquet(arguments.staging)
    flight_count = staged.count()
    if flight_count == 0:
        reason = f"{arguments.flights} has no flights on {arguments.date}."
        raise SystemExit(reason)
    print(f"{flight_count} flights on {arguments.date}")

    planes = spark.read.parquet(arguments.planes)
    summarise(staged, planes).coalesce(1).write.mode("overwrite").parquet(arguments.output)

    spark.stop()


def add_weather(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Add the weather at the origin in the hour of departure; a few hours were not observed."""
    observed = weather.select("origin", "time_hour", "temp", "wind_speed", "visib")
    return flights.join(observed, ["origin", "time_hour"], "left").select(
        "carrier",
        "flight",
        "tailnum",
        "origin",
        "dest",
        "dep_delay",
        "temp",
        "wind_speed",
        "visib",
    )


def summarise(flights: DataFrame, planes: DataFrame) -> DataFrame:
    """Return one row for each carrier, origin and manufacturer.

    One flight in six was made by a plane that is not in the table of planes.
    """
    registered = planes.select("tailnum", "manufacturer", "seats")
    manufacturer = sf.coalesce("manufacturer", sf.lit("unknown"))
    return (
        flights.join(registered, "tailnum", "left")
        .groupBy("carrier", "origin", manufacturer.alias("manufacturer"))
        .agg(
            sf.count("flight").alias("flights"),
            sf.round(sf.avg("dep_delay"), 1).alias("avg_dep_delay"),
            sf.max("dep_delay").alias("max_dep_delay"),
            sf.round(sf.avg("visib"), 1).alias("avg_visibility"),
            sf.round(sf.max("wind_speed"), 1).alias("max_wind_speed"),
            sf.sum("seats").alias("seats"),
        )
    )


if __name__ == "__main__":
    main()
