"""A target that is a store of files; DuckDB and Spark read each other's files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from airflow_provider_sparklineage.history.engines.affected import BY_RUN, is_replaced, new_rows
from airflow_provider_sparklineage.history.engines.layouts import MAX_PARTS, Sizes, smallest
from airflow_provider_sparklineage.history.engines.spark.pieces import (
    PLACE,
    WRITING,
    Divider,
    Place,
    bucketed,
    buckets_of,
    write,
)
from airflow_provider_sparklineage.history.engines.spark.sql import (
    on_disk,
    spark_schema,
    spark_selection,
    spark_sql,
)
from airflow_provider_sparklineage.history.store import Layout, Piece
from airflow_provider_sparklineage.history.tables import ACCESSES, COLUMNS, FACTS, RUNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, SparkSession

    from airflow_provider_sparklineage.history.store import Building
    from airflow_provider_sparklineage.history.tables import Table

JOINED = "joined"
"""The folder of facts that several builds have added, below that of the build that joins them."""
_FACTS = 250_000
"""About so many facts of several builds are joined into one file."""
# File systems that have one name in Airflow and another one in Hadoop.
_SCHEMES = {"s3": "s3a", "local": "file"}


class Parquet:
    """A target that is a store of files; see :class:`.building.Target`.

    Spark writes the files to their final place; the manifest names them after all are written.

    :param sizes: how the tables are divided among files
    """

    def __init__(
        self,
        session: SparkSession,
        building: Building,
        sizes: Sizes = Sizes(),  # noqa: B008 - it is frozen
    ) -> None:
        self._session, self._building, self._sizes = session, building, sizes
        self._root = hadoop_url(building.store.url)
        self._parts = dict(building.before.facts)
        self._layout = Layout(1, [""], {})
        """The layout of the tables that the build has written or replaced so far."""
        self._before: Mapping[str, Sequence[Piece]] = {}
        self._bucketed: DataFrame | None = None

    def facts(self) -> DataFrame:
        """Give all facts, except those of forgotten events."""
        return self.not_forgotten(self._facts(self._parts))

    def not_forgotten(self, facts: DataFrame) -> DataFrame:
        """Give facts of events that are not older than those which builds have forgotten."""
        since = self._building.before.since
        if since is None:
            return facts
        start = since.replace(tzinfo=None).isoformat(" ")
        return facts.where(f"event_time >= TIMESTAMP_NTZ '{start}'")

    def add(self, facts: DataFrame) -> None:
        """Add facts to the store as one part: a part is the files that one build wrote."""
        self._parts[self._building.facts_part] = self._add(facts, self._building.facts_folder)

    def _add(self, facts: DataFrame, folder: str) -> list[str]:
        """Write facts into a folder of the store; give the names of the files."""
        facts.write.options(**WRITING).parquet(f"{self._root}/{folder}")
        read = self._session.read.schema(facts.schema).parquet(f"{self._root}/{folder}")
        return sorted(f"{folder}/{file.rpartition('/')[2]}" for file in read.inputFiles())

    def _join_parts(self) -> None:
        """Write the smallest parts of the facts again, as one."""
        from pyspark.sql import functions as f

        files = self.facts().groupBy(f.input_file_name().alias("file")).count().collect()
        counts = {_end(unquote(row.file)): row["count"] for row in files}
        sizes = {part: sum(counts.get(_end(name), 0) for name in names)
                 for part, names in self._parts.items()}  # fmt: skip
        joined = {part: self._parts.pop(part) for part in smallest(sizes)}
        many = sum(sizes[part] for part in joined) // _FACTS + 1
        facts = self.not_forgotten(self._facts(joined)).repartition(many)
        building = self._building
        names = self._add(facts, f"{building.facts_folder}/{JOINED}")
        self._parts[f"{building.facts_part}-{JOINED}"] = names

    def added(self) -> DataFrame:
        """Give the facts that this build has added."""
        part = self._building.facts_part
        return self._facts({part: self._parts[part]})

    def older(self, affected: DataFrame) -> DataFrame:
        """Give the facts in the files that have affected runs, of the times of these."""
        from pyspark.sql import functions as f

        known = self.not_forgotten(self._facts(self._building.before.facts))
        # The other columns, which are long, are read only where there are such rows.
        named = known.select("run_id", "event_time", f.input_file_name().alias("file"))
        named = named.join(f.broadcast(affected), "run_id", "left_semi")
        first, last = f.min("event_time").alias("first"), f.max("event_time").alias("last")
        places = named.groupBy("file").agg(first, last).collect()
        if not places:
            return known.limit(0)
        ends = {_end(unquote(row.file)) for row in places}
        names = (name for names in self._building.before.facts.values() for name in names)
        files = [name for name in names if _end(name) in ends]
        times = min(row["first"] for row in places), max(row["last"] for row in places)
        of_files = self.not_forgotten(self._facts({"": files}))
        return of_files.where(f.col("event_time").between(*map(_time, times)))

    # --- all tables -------------------------------------------------------------------------------

    def save(self, table: Table, rows: DataFrame) -> DataFrame:
        """Write the rows of a table to pieces, and give the rows as they are read from these."""
        rows = on_disk(rows)
        if table is ACCESSES:
            spread = self._sizes.spread(rows.count())
            self._layout = Layout(
                spread, buckets_of(self._session, rows, spread), self._layout.pieces
            )
            if len(self._layout.buckets) > 1:
                self._bucketed = self._divided(rows.select("namespace", "name"))
        buckets = range(len(self._layout.buckets) if table.is_by_dataset else 1)
        places = [Place(bucket) for bucket in buckets]
        divider = self._divider(table)
        cut = divider.cut(divider.placed(rows, places), places, self._sizes)
        self._write(table, rows, [], {place: n for one in cut.values() for place, n in one.items()})
        rows.unpersist()
        if not self._layout.pieces[table.name]:
            return self._read(table, ())
        # The folder has all rows; in lineage it is one dataset, and each file would be one.
        reader = self._session.read.schema(spark_schema(table.columns))
        folder = f"{self._root}/{self._building.tables_folder}/{table.name}"
        return reader.parquet(folder).drop(PLACE)

    # --- a merge ----------------------------------------------------------------------------------

    def is_mergeable(self, new: int) -> bool:
        """Whether the layout of the files is known, and not outgrown with so many new events."""
        before = self._sizes.mergeable(self._building.before, new)
        if before is None:
            return False
        self._before = before.pieces
        self._layout = Layout(before.spread, before.buckets, {})
        return True

    def stored(self, table: Table) -> DataFrame:
        """Give the rows of a table before: of one by dataset, in the buckets of ``datasets``."""
        pieces = self._before[table.name]
        if table.is_by_dataset and len(self._layout.buckets) > 1:
            if self._bucketed is None:
                self._bucketed = self._divided_with(self._session.table("datasets"))
            rows = self._bucketed.select("bucket").distinct().collect()
            named = {row.bucket for row in rows}
            pieces = [piece for piece in pieces if piece.bucket in named]
        return self._read(table, pieces)

    def replace(self, table: Table) -> int:
        """Write the pieces anew whose rows change."""
        pieces = self._before[table.name]
        there = {Place.of(piece.bucket, piece.start): piece for piece in pieces}
        buckets = range(len(self._layout.buckets) if table.is_by_dataset else 1)
        places = sorted({*there, *(Place(bucket) for bucket in buckets)})
        divider = self._divider(table)
        new = self._sql(new_rows(table)).selectExpr(*spark_selection(table))
        old = self._where(self._old(table, places), is_replaced(table))
        changed = divider.changed(divider.placed(old, places), divider.placed(new, places))
        if changed:
            self._rewrite(table, places, new, changed)
        else:
            self._layout.pieces[table.name] = [*pieces]
        return sum(piece.rows for piece in self._layout.pieces[table.name])

    def _rewrite(
        self, table: Table, places: Sequence[Place], new: DataFrame, changed: Mapping[int, int]
    ) -> None:
        """Write pieces anew, and cut those that have become too large.

        :param places: the places of the table before, in which rows are placed
        :param new: the rows that come into the table
        :param changed: the numbers of the places to write, with the number of rows that are added
        """
        pieces = self._before[table.name]
        there = {Place.of(piece.bucket, piece.start): piece for piece in pieces}
        files = [there[places[number]] for number in changed if places[number] in there]
        counts = {places[number]: more for number, more in changed.items()}
        for place in counts.keys() & there.keys():
            counts[place] += there[place].rows
        divider = self._divider(table)
        kept = self._where(self._read(table, files), f"NOT ({is_replaced(table)})")
        new = divider.placed(new, places).where(_is_in(changed)).select(kept.columns)
        rows = kept.unionByName(new)
        if large := [number for number in changed if counts[places[number]] > self._sizes.piece]:
            placed = divider.placed(rows, places).where(_is_in(large))
            for number, parts in divider.cut(placed, places, self._sizes).items():
                counts.pop(places[number])
                counts |= parts
        self._write(table, rows, [piece for piece in pieces if piece not in files], counts)

    def _old(self, table: Table, places: Sequence[Place]) -> DataFrame:
        """Give the rows of a table among which those to be replaced are."""
        if table not in (RUNS, COLUMNS):
            return self.stored(BY_RUN.get(table, table))
        # Rows of a run are where its end was.
        runs = self._session.table("old_runs").join(self._session.table("affected"), "run_id")
        rows = self._divider(table).placed(runs, places).select(PLACE).distinct().collect()
        wanted = {places[row[PLACE]] for row in rows}
        pieces = self._before[table.name]
        return self._read(table, [p for p in pieces if Place.of(p.bucket, p.start) in wanted])

    # --- both -------------------------------------------------------------------------------------

    def publish(self, rows: Mapping[str, int], skipped: Mapping[str, int]) -> None:
        """Publish the written files as a new generation (version of all tables) of the store.

        The errors are those of :meth:`.Building.publish`.

        :param rows: number of rows of each table, by name of the table; if it is empty, the tables
            have not changed, and nothing is published
        :param skipped: number of texts and files that this build has skipped, by reason
        """
        if rows:
            if len(self._parts) > MAX_PARTS:
                self._join_parts()
            pieces = self._layout.pieces.items()
            tables = {name: [one.file for one in files] for name, files in pieces}
            counted = {"events": self.facts().count(), **rows}
            self._building.publish(self._parts, tables, counted, skipped, layout=self._layout)

    def _write(
        self,
        table: Table,
        rows: DataFrame,
        left: Iterable[Piece],
        counts: Mapping[Place, int],
    ) -> None:
        """Write rows to pieces, and put these into the layout.

        :param left: the pieces of the table that are not written anew
        :param counts: the places of all rows, with the number of rows in each
        """
        folder = f"{self._building.tables_folder}/{table.name}"
        pieces = {Place.of(piece.bucket, piece.start): piece for piece in left}
        if any(counts.values()):
            # Rows are placed among all places: else a place would reach up to the next changed one.
            buckets = range(len(self._layout.buckets) if table.is_by_dataset else 1)
            places = sorted({*pieces, *counts, *(Place(bucket) for bucket in buckets)})
            placed = self._divider(table).placed(rows, places)
            numbers = [number for number, place in enumerate(places) if counts.get(place)]
            names = write(placed, table, f"{self._root}/{folder}", numbers)
            for number, name in names.items():
                place = places[number]
                pieces[place] = Piece(f"{folder}/{name}", counts[place], place.text, place.bucket)
        self._layout.pieces[table.name] = [pieces[place] for place in sorted(pieces)]

    def _divider(self, table: Table) -> Divider:
        return Divider(self._session, table, self._bucketed)

    def _divided_with(self, datasets: DataFrame) -> DataFrame:
        """Give the bucket of each dataset that is in the buckets of some datasets."""
        rows = bucketed(self._session, datasets, self._layout.buckets).select("bucket").distinct()
        named = {row.bucket for row in rows.collect()}
        pieces = [piece for piece in self._before[ACCESSES.name] if piece.bucket in named]
        datasets = datasets.select("namespace", "name")
        others = self._read(ACCESSES, pieces).select("namespace", "name")
        return self._divided(datasets.unionByName(others))

    def _divided(self, datasets: DataFrame) -> DataFrame:
        return bucketed(self._session, datasets, self._layout.buckets).persist()

    def _facts(self, parts: Mapping[str, Sequence[str]]) -> DataFrame:
        names = [name for files in parts.values() for name in files]
        return table_of(self._session, self._building.store.url, FACTS, names)

    def _read(self, table: Table, pieces: Iterable[Piece]) -> DataFrame:
        names = [piece.file for piece in pieces]
        return table_of(self._session, self._building.store.url, table, names)

    def _where(self, rows: DataFrame, condition: str) -> DataFrame:
        """Give the rows ``r`` for which a condition of DuckDB's SQL holds."""
        rows.createOrReplaceTempView("all_rows")
        return self._sql(f"SELECT * FROM all_rows AS r WHERE {condition}")

    def _sql(self, query: str) -> DataFrame:
        return self._session.sql(spark_sql(query))


def _is_in(numbers: Iterable[int]) -> str:
    return f"{PLACE} IN ({', '.join(map(str, numbers))})"


def _end(name: str) -> str:
    """Give the end of the path of a file of facts, which no other one has."""
    return "/".join(name.split("/")[-2:])


def _time(time: datetime) -> Column:
    from pyspark.sql import functions as f

    return f.expr(f"TIMESTAMP_NTZ '{time.isoformat(' ')}'")


def table_of(session: SparkSession, url: str, table: Table, names: Sequence[str]) -> DataFrame:
    """Read files of a store; a column that the files lack is null.

    Each file is read by its name: a later generation names only some of the files in a folder.

    :param url: the URL of the store
    :param table: the table whose rows the files have
    :param names: the names of the files in the store; if there are none, there are no rows
    """
    schema = spark_schema(table.columns)
    if not names:
        return session.createDataFrame([], schema)
    root = hadoop_url(url)
    return session.read.schema(schema).parquet(*(f"{root}/{name}" for name in names))


def hadoop_url(url: str) -> str:
    """Convert the URL of a store to one for Spark's file systems.

    An Airflow connection in an S3 URL is dropped: Spark has its own credentials.
    """
    if "://" not in url:
        return f"file://{Path(url).absolute()}"
    parts = urlsplit(url)
    scheme = _SCHEMES.get(parts.scheme, parts.scheme)
    if scheme == "file":
        return f"file://{unquote(parts.path)}".rstrip("/")
    host = parts.netloc.rpartition("@")[2] if scheme == "s3a" else parts.netloc
    return urlunsplit((scheme, host, parts.path.rstrip("/"), "", ""))
