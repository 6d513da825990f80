"""Runs a plan of reads and writes, `plan.json` next to the lake, and notes what the lake got.

Each operation is one line of `truth.ndjson`: its place in the plan, begin and end, and the
partitions that it put into each folder, or removed: by name of the new files, from Delta's log,
from Iceberg's metadata tables. What a read selects is not noted: that follows from the plan.
"""

from __future__ import annotations

import functools
import json
import operator
import re
import sys
import threading
import time
import urllib.parse
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

LAKE = Path(sys.argv[1])
NULL = "__HIVE_DEFAULT_PARTITION__"
MODE = "spark.sql.sources.partitionOverwriteMode"
# Of tables that are made while it is set: their log has other names for the columns.
MAPPING = "spark.databricks.delta.properties.defaults.columnMapping.mode"

spark = SparkSession.builder.getOrCreate()


class Relation:
    """A relation of the plan: how it is created, written and read depends on its kind."""

    def __init__(self, plan, suffix=""):
        self.name = plan["name"] + suffix
        self.kind = plan["kind"]
        self.types = plan["types"]
        self.transforms = plan["transforms"]
        self.mapped = plan["mapped"]
        self.columns = [f"p{i}" for i in range(len(self.types))]
        above = {"table": "warehouse", "iceberg": "iceberg/db"}.get(self.kind, self.kind)
        self.folder = f"{above}/{self.name}"
        self.path = str(LAKE / self.folder)
        self.table = f"lakehouse.db.{self.name}" if self.kind == "iceberg" else self.name
        self.schema = ", ".join(
            ["amount int", *(f"{c} {t}" for c, t in zip(self.columns, self.types, strict=True))]
        )

    def prepare(self):
        """Make the table, where that is no write."""
        format_of = {"table": "parquet", "iceberg": "iceberg"}
        if self.kind in format_of:
            by = [
                transform.format(column) or column
                for transform, column in zip(self.transforms, self.columns, strict=True)
            ]
            spark.sql(
                f"create table {self.table} ({self.schema}) using {format_of[self.kind]} "
                f"partitioned by ({', '.join(by)}) {self._properties()}"
            )

    def _properties(self):
        """Have Iceberg select by partitions alone, where files of one hold several values."""
        if not any(self.transforms):
            return ""
        return "tblproperties ('write.metadata.metrics.default'='none')"

    def images(self, values):
        """Give the partitions that Iceberg makes of values: per column, [value, partition]."""
        return [
            transform and [[v, self._image(transform, v, kind)] for v in column]
            for transform, column, kind in zip(self.transforms, values, self.types, strict=True)
        ]

    def _image(self, transform, value, kind):
        literal = f"cast({_literal(value, 'string')} as {kind})"
        image = spark.sql(f"select lakehouse.system.{transform.format(literal)}").first()[0]
        return image.isoformat() if hasattr(image, "isoformat") else image

    def frame(self, rows, repartition=0):
        texts = [[1, *(None if v is None else str(v) for v in row)] for row in rows]
        names = ", ".join(["amount int", *(f"{c} string" for c in self.columns)])
        frame = spark.createDataFrame(texts, names)
        casts = [f.col(c).cast(t) for c, t in zip(self.columns, self.types, strict=True)]
        casts = [c.alias(n) for c, n in zip(casts, self.columns, strict=True)]
        frame = frame.select("amount", *casts)
        return frame.repartition(repartition) if repartition else frame.coalesce(1)

    def read(self):
        if self.kind == "files":
            return spark.read.schema(self.schema).parquet(self.path)
        if self.kind == "delta":
            return spark.read.format("delta").load(self.path)
        return spark.table(self.table)

    def write(self, step):
        frame = self.frame(step["rows"], step.get("repartition", 0))
        mode = step["mode"]
        if mode == "dynamic session":
            spark.conf.set(MODE, "dynamic")
        if self.mapped:
            spark.conf.set(MAPPING, "name")
        try:
            getattr(self, f"_write_{self.kind}")(frame, mode, step.get("static") or [])
        finally:
            spark.conf.unset(MODE)
            spark.conf.unset(MAPPING)

    def _write_files(self, frame, mode, _static):
        self._save(frame.write.format("parquet"), mode)

    def _write_delta(self, frame, mode, static):
        writer = frame.write.format("delta")
        if mode == "static":
            value = _literal(static[0], self.types[0])
            condition = f"{self.columns[0]} is null" if static[0] is None else f"p0 = {value}"
            writer = writer.option("replaceWhere", condition)
        self._save(writer, mode)

    def _save(self, writer, mode):
        if mode == "dynamic option":
            writer = writer.option("partitionOverwriteMode", "dynamic")
        save_mode = "append" if mode == "append" else "overwrite"
        writer.mode(save_mode).partitionBy(*self.columns).save(self.path)

    def _write_table(self, frame, mode, static):
        if mode == "recreate":
            writer = frame.write.format("parquet").mode("overwrite")
            writer.partitionBy(*self.columns).saveAsTable(self.table)
            return
        if mode == "append":
            frame.write.insertInto(self.table)
            return
        frame.createOrReplaceTempView("v")
        spec = ""
        if static:
            values = [
                f"{c}={_literal(v, t)}"
                for c, v, t in zip(self.columns, static, self.types, strict=False)
            ]
            spec = f" partition ({', '.join([*values, *self.columns[len(static) :]])})"
        selected = ", ".join(["amount", *self.columns[len(static) :]])
        spark.sql(f"insert overwrite {self.table}{spec} select {selected} from v")

    def _write_iceberg(self, frame, mode, static):
        if mode == "append":
            frame.writeTo(self.table).append()
        elif mode == "dynamic option":
            frame.writeTo(self.table).overwritePartitions()
        elif mode == "static":
            condition = _condition(self, {"column": 0, "kind": "eq", "values": static[:1]})
            frame.writeTo(self.table).overwrite(condition)
        else:
            frame.createOrReplaceTempView("v")
            spark.sql(f"insert overwrite {self.table} select * from v")


def _literal(value, kind):
    if value is None:
        return "null"
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return {"int": text, "string": f"'{text}'", "date": f"date'{text}'"}[kind]


# --- reads ----------------------------------------------------------------------------------------


def _condition(relation, condition):
    column = f.col(relation.columns[condition["column"]])
    kind = condition["kind"]
    cast = relation.types[condition["column"]]
    values = [f.lit(v).cast(cast) for v in condition["values"]]
    if kind == "null" or (kind == "eq" and condition["values"] == [None]):
        return column.isNull()
    if kind == "not null":
        return column.isNotNull()
    if kind == "in":
        return column.isin(*values)
    if kind == "range":
        return (column >= values[0]) & (column <= values[1])
    return column != values[0] if kind == "not" else column == values[0]


def _filtered(relation, frame, conditions, junction):
    if not conditions:
        return frame
    joined = operator.and_ if junction == "and" else operator.or_
    return frame.where(functools.reduce(joined, [_condition(relation, c) for c in conditions]))


def dimension_of(relation):
    return f"dimensions/{relation.name}"


def write_dimension(relation, keys):
    rows = [[i, None if k is None else str(k)] for i, k in enumerate(keys)]
    frame = spark.createDataFrame(rows, "tag int, key string")
    frame = frame.select("tag", f.col("key").cast(relation.types[0]))
    frame.coalesce(1).write.parquet(str(LAKE / dimension_of(relation)))


def read_folder(relation, step):
    """Read a partition's folder by its path; give its values, or None where there is no folder."""
    root = LAKE / relation.folder
    folders = sorted({f.parents[-1 - step["depth"]] for f in _files(relation.folder)})
    if not folders:
        return None
    folder = folders[step["folder"] % len(folders)]
    reader = spark.read
    if step["base_path"]:
        reader = reader.option("basePath", str(root))
    # Spark takes characters of a path for a pattern, other than those of a folder that it lists.
    path = re.sub(r"([\\{}\[\]*?,^])", r"\\\1", str(root / folder))
    reader.parquet(path).write.format("noop").mode("overwrite").save()
    return _partition_of(folder / "file")


def read(relation, step):
    frames = [
        _filtered(relation, relation.read(), filters, step["junction"])
        for filters in step["filters"]
    ]
    frame = functools.reduce(lambda a, b: a.unionByName(b), frames)
    if step.get("tags") is not None:
        dimension = spark.read.parquet(str(LAKE / dimension_of(relation)))
        dimension = dimension.where(f.col("tag").isin(step["tags"]))
        frame = frame.join(f.broadcast(dimension), f.col("p0") == f.col("key"))
    if step.get("grouped"):
        frame = frame.groupBy("p0").agg(f.sum("amount"))
    copy = step.get("copy_to")
    if copy:
        frame.write.partitionBy("p0").parquet(str(LAKE / copy))
    else:
        frame.write.format("noop").mode("overwrite").save()


# --- the truth ------------------------------------------------------------------------------------


def _files(folder):
    root = LAKE / folder
    found = (p.relative_to(root) for p in root.rglob("*") if p.is_file())
    return {p for p in found if not p.name.startswith((".", "_"))}


def _partition_of(file):
    found = []
    for folder in file.parts[:-1]:
        value = urllib.parse.unquote(folder.partition("=")[2])
        found.append(None if value == NULL else value)
    return found


def _distinct(partitions):
    return [json.loads(text) for text in sorted({json.dumps(list(p)) for p in partitions})]


class Truth:
    """What a relation's own record has of the writes between two times."""

    def __init__(self, relation):
        self._relation = relation
        self._before = self._now()

    def _now(self):
        relation = self._relation
        if relation.kind == "delta":
            return set((LAKE / relation.folder / "_delta_log").glob("*.json"))
        if relation.kind == "iceberg":
            return {
                snapshot["snapshot-id"]
                for file in (LAKE / relation.folder / "metadata").glob("*.metadata.json")
                for snapshot in json.loads(file.read_text()).get("snapshots", ())
            }
        return _files(relation.folder)

    def since(self):
        """Give what came since the last call: partitions; of Iceberg, as yet, the new snapshots."""
        now = self._now()
        new, self._before = now - self._before, now
        if self._relation.kind == "iceberg":
            return {"table": self._relation.table, "snapshots": sorted(new)}
        if self._relation.kind == "delta":
            return _delta_truth(new, self._names_in_the_log())
        return {"written": _distinct(map(_partition_of, new))}

    def _names_in_the_log(self):
        """Give the names that the log has for the partition columns, in their order."""
        first = LAKE / self._relation.folder / "_delta_log" / f"{0:020}.json"
        lines = map(json.loads, first.read_text().splitlines())
        [meta] = [line["metaData"] for line in lines if "metaData" in line]
        names = {
            field["name"]: field["metadata"].get("delta.columnMapping.physicalName")
            for field in json.loads(meta["schemaString"])["fields"]
        }
        return [names[column] or column for column in self._relation.columns]


def _delta_truth(commits, columns):
    found = {"add": [], "remove": []}
    for file in commits:
        for line in file.read_text().splitlines():
            for key, action in json.loads(line).items():
                if key in found and action.get("dataChange"):
                    values = action.get("partitionValues") or {}
                    found[key].append([values.get(c) or None for c in columns])
    return {"written": _distinct(found["add"]), "removed": _distinct(found["remove"])}


def _resolve_iceberg(lines):
    """Put partitions in the place of snapshots: of each table one query of its metadata."""
    entries = {}
    for line in lines:
        for folder, truth in line["writes"].items():
            if "snapshots" not in truth:
                continue
            table = truth["table"]
            if table not in entries:
                chosen = spark.sql(
                    f"select status, snapshot_id, data_file.partition as p from {table}.all_entries"
                )
                entries[table] = [(r.status, r.snapshot_id, list(r.p)) for r in chosen.collect()]
            line["writes"][folder] = {
                key: _distinct(
                    [None if v is None else str(v) for v in values]
                    for was, snapshot, values in entries[table]
                    if was == status and snapshot in truth["snapshots"]
                )
                for key, status in (("written", 1), ("removed", 2))
            }


def _united(folder, truths):
    united = {key: _distinct(p for t in truths for p in t[key]) for key in truths[0]}
    return {folder: united}


# --------------------------------------------------------------------------------------------------


def _sequence(relation, truth, steps):
    """Write one after the other, looking at what is there after each."""
    truths = []
    for step in steps:
        relation.write(step)
        truths.append(truth.since())
    if relation.kind == "iceberg":
        snapshots = sorted({s for t in truths for s in t["snapshots"]})
        return {relation.folder: {**truths[0], "snapshots": snapshots}}
    return _united(relation.folder, truths)


def _at_once(relations, truths, steps):
    failed = []

    def put(relation, step):
        try:
            relation.write(step)
        except Exception as error:  # reported by the main thread
            failed.append(error)

    threads = [
        threading.Thread(target=put, args=pair) for pair in zip(relations, steps, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return {folder: truth.since() for folder, truth in truths.items()}


def perform(operation, relation, sibling, truth, sibling_truth):
    what = operation["what"]
    if what == "write":
        return _sequence(relation, truth, operation["steps"])
    if what == "threads":
        two = relation if operation["same"] else sibling
        truths = {two.folder: sibling_truth, relation.folder: truth}
        return _at_once([relation, two], truths, operation["steps"])
    read(relation, operation)
    copy = operation.get("copy_to")
    return {copy: {"written": _distinct(map(_partition_of, _files(copy)))}} if copy else {}


def drain():
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(120000)


def run() -> None:
    lines = []
    for number, plan in enumerate(json.loads((LAKE.parent / "plan.json").read_text())):
        relation, sibling = Relation(plan), Relation(plan, "_b")
        relation.prepare()
        if any(o["what"] == "threads" for o in plan["operations"]):
            sibling.prepare()
        if any(relation.transforms):
            lines.append({"lake": number, "writes": {}, "images": relation.images(plan["values"])})
        if plan["keys"]:
            write_dimension(relation, plan["keys"])
        truth, sibling_truth = Truth(relation), Truth(sibling)
        for position, operation in enumerate(plan["operations"]):
            drain()  # or the listing of a write may come after the next one
            time.sleep(0.02)
            begin = time.time() * 1000
            line = {"lake": number, "operation": position, "begin": begin}
            if "folder" in operation:
                line["inside"], writes = read_folder(relation, operation), {}
            else:
                writes = perform(operation, relation, sibling, truth, sibling_truth)
            drain()
            lines.append({**line, "end": time.time() * 1000, "writes": writes})
            print(number, plan["kind"], operation, round(time.time() * 1000 - begin), flush=True)
    _resolve_iceberg(lines)
    (LAKE.parent / "truth.ndjson").write_text("".join(json.dumps(x) + "\n" for x in lines))


if __name__ == "__main__":
    run()
