"""Writes the lake that every recorded application starts from; not recorded itself.

orders(order_id, customer_id, amount, region | dt)   three days, 2024-05-05 to 2024-05-07
customers(customer_id, name, email, segment)         not partitioned
rates(currency, rate | month)                        two months, 2024-04 and 2024-05
sales_<write>(region, amount | dt)                   two days before the orders, a copy per write
ledger_<write>(order_id, amount)                     of an earlier application, a copy per append
profiles(customer_id, address, tags, attributes)     nested; address has a street, city and geo
shop: CLIENTS(ID, NAME, COUNTRY), COUNTRIES(CODE, TITLE), ENTRIES(ID, amount), a Derby database

Column names after the bar are partition columns.
"""

import sys

from pyspark.sql import SparkSession

ORDERS = [
    (1, 1, 10.0, "eu", "2024-05-05"),
    (2, 2, 20.0, "us", "2024-05-05"),
    (3, 1, 30.0, "eu", "2024-05-06"),
    (4, 2, 40.0, "us", "2024-05-06"),
    (5, 3, -5.0, "us", "2024-05-06"),
    (6, 3, 60.0, "eu", "2024-05-07"),
]
CUSTOMERS = [
    (1, "Ada", "ada@example.org", "private"),
    (2, "Ben", "ben@example.org", "business"),
    (3, "Cleo", "cleo@example.org", "private"),
]
RATES = [("EUR", 0.9, "2024-04"), ("EUR", 0.95, "2024-05"), ("GBP", 0.8, "2024-05")]
EARLIER_SALES = [("eu", 5.0, "2024-05-03"), ("us", 7.0, "2024-05-04")]
EARLIER_LEDGER = [(100, 1.0), (101, 2.0)]
PROFILES = [
    (1, ("Main St", "Bath", (51.4, -2.4)), ["new", "vip"], {"tier": "gold"}),
    (2, ("High St", "York", (54.0, -1.1)), ["old"], {"tier": "iron"}),
]
SHOP = {
    "CLIENTS": ([(1, "Ada", "gb"), (2, "Ben", "de"), (3, "Cleo", "fr")], "ID", "NAME", "COUNTRY"),
    "COUNTRIES": ([("gb", "Britain"), ("de", "Germany")], "CODE", "TITLE"),
    "ENTRIES": ([(100, 1.0)], "ID", "amount"),
}


def main(lake: str) -> None:
    """Write every dataset in one file per partition."""
    spark = SparkSession.builder.getOrCreate()

    orders = spark.createDataFrame(
        ORDERS, "order_id long, customer_id long, amount double, region string, dt string"
    )
    orders.coalesce(1).write.partitionBy("dt").parquet(f"{lake}/orders")

    customers = spark.createDataFrame(
        CUSTOMERS, "customer_id long, name string, email string, segment string"
    )
    customers.coalesce(1).write.parquet(f"{lake}/customers")

    rates = spark.createDataFrame(RATES, "currency string, rate double, month string")
    rates.coalesce(1).write.partitionBy("month").parquet(f"{lake}/rates")

    sales = spark.createDataFrame(EARLIER_SALES, "region string, amount double, dt string")
    for write in ("append", "static", "option", "session"):
        sales.coalesce(1).write.partitionBy("dt").parquet(f"{lake}/sales_{write}")

    ledger = spark.createDataFrame(EARLIER_LEDGER, "order_id long, amount double")
    for write in ("path", "table"):
        ledger.coalesce(1).write.parquet(f"{lake}/ledger_{write}")

    profiles = spark.createDataFrame(
        PROFILES,
        "customer_id long, address struct<street:string,city:string,geo:struct<lat:double,"
        "lon:double>>, tags array<string>, attributes map<string,string>",
    )
    profiles.coalesce(1).write.parquet(f"{lake}/profiles")

    driver = {"driver": "org.apache.derby.jdbc.EmbeddedDriver"}
    for table, (rows, *columns) in SHOP.items():
        frame = spark.createDataFrame(rows, columns).coalesce(1)
        # Derby does not compare the CLOB that Spark makes of strings.
        types = ", ".join(f"{name} VARCHAR(32)" for name, kind in frame.dtypes if kind == "string")
        typed = frame.write.option("createTableColumnTypes", types) if types else frame.write
        typed.jdbc(f"jdbc:derby:{lake}/shop;create=true", table, properties=driver)


if __name__ == "__main__":
    main(sys.argv[1])
