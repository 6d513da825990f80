"""Ask Spark which files it takes lists for, and write a table that the observer sees."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

lake = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
jvm = spark.sparkContext._jvm
hadoop = spark.sparkContext._jsc.hadoopConfiguration()
answers = {}
for text in json.loads(Path(lake, "lists.json").read_text(encoding="utf-8")):
    try:
        resolved = jvm.org.apache.spark.util.Utils.resolveURIs(text)
        found = jvm.org.apache.spark.util.DependencyUtils.resolveGlobPaths(resolved, hadoop)
        uris = [jvm.java.net.URI(uri) for uri in found.split(",")]
        answers[text] = [uri.getPath() if uri.getFragment() is None else None for uri in uris]
    except Exception:
        answers[text] = None
Path(lake, "answers.json").write_text(json.dumps(answers), encoding="utf-8")
spark.range(3).selectExpr("id", "id AS day").write.partitionBy("day").csv(f"{lake}/out")
# An executor's Python has the zip on its path as well.
assert spark.sparkContext.parallelize([1]).map(lambda x: x + 1).collect() == [2]
spark.stop()
