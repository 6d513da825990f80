"""A job that reports all that it can see of its own process, and ends as its arguments demand."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import shop_library
from pyspark.sql import SparkSession

print("library", shop_library.NAME)


def can_write_here():
    try:
        Path("written").touch()
    except OSError:
        return False
    Path("written").unlink()
    return True


print("can write here:", "yes" if can_write_here() else "no")
print("site", getattr(sys.modules["sitecustomize"], "SHOP", None))
print("argv", sys.argv[1:])
print("modules", sorted(m for m in sys.modules if m.startswith("pyspark"))[:3])


AUDITED: list[str] = []


class Audit:
    """The job's own listener, next to ours on the same callback server."""

    class Java:
        implements = ["org.apache.spark.sql.util.QueryExecutionListener"]  # noqa: RUF012  (py4j)

    def onSuccess(self, function, _execution, _duration):  # noqa: N802
        AUDITED.append(function)

    def onFailure(self, function, _execution, _exception):  # noqa: N802
        AUDITED.append(f"{function} failed")


spark = SparkSession.builder.getOrCreate()
context = spark.sparkContext
if sys.argv[2] == "stop":
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(context._gateway)
    spark._jsparkSession.listenerManager().register(Audit())
spark.range(10).selectExpr("id", "id % 2 as p").write.partitionBy("p").parquet(sys.argv[1])
print("rows", spark.read.parquet(sys.argv[1]).where("p = 1").count())
print("cwd", list(Path().iterdir()))
context._jsc.sc().listenerBus().waitUntilEmpty(30000)
print("audit", AUDITED)

if sys.argv[2] == "stop":
    spark.stop()
elif sys.argv[2] == "exit":
    sys.exit(3)
elif sys.argv[2] == "raise":
    raise ValueError(sys.argv[2])
elif sys.argv[2] == "os_exit":
    sys.stdout.flush()
    os._exit(4)
elif sys.argv[2] == "sigterm":
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGTERM)
