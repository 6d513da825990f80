"""Twenty-four random actions on each other's outputs, from a fixed seed.

What it is for: combinations that nobody would think of. The plan knows the truth of each step
before Spark runs, so a test can compute the lineage of every output by its own.

Truth
  inputs         those of orders, customers and rates that a step reads
  intermediates  those of random/r0 to random/r7 that a step reads
  outputs        random/r0 to random/r7, some of them overwritten on the way
  columns        as in :func:`plan`
"""

import random
import sys
from dataclasses import dataclass

SEED = 20240506
STEPS = 24
OUTPUTS = 8
SOURCES = {
    "orders": ("region", "dt"),
    "customers": ("name", "email", "segment"),
    "rates": ("currency", "month"),
}


@dataclass(frozen=True)
class Made:
    """A column of a step: what it is called, its SQL, and the columns that it is made of.

    :param of: pairs of dataset and column
    :param subtype: IDENTITY, TRANSFORMATION or AGGREGATION
    """

    name: str
    sql: str
    of: tuple[tuple[str, str], ...]
    subtype: str


@dataclass(frozen=True)
class Step:
    """One action.

    :param branches: the columns of each SELECT; several are united by position
    :param sql: the full query, over views called as the datasets
    :param influences: dataset and column of what joins or groups the rows, with JOIN or GROUP_BY
    """

    output: str
    reads: tuple[str, ...]
    branches: tuple[tuple[Made, ...], ...]
    sql: str
    influences: frozenset[tuple[str, str, str]] = frozenset()


def plan(seed: int = SEED) -> list[Step]:
    """Give the steps of a seed."""
    choose = random.Random(seed)
    known: dict[str, tuple[str, ...]] = dict(SOURCES)
    steps = []
    for _ in range(STEPS):
        kind = choose.choice((_projection, _join, _union, _grouping))
        reads = tuple(choose.sample(sorted(known), 2 if kind in (_join, _union) else 1))
        free = [f"r{n}" for n in range(OUTPUTS) if f"r{n}" not in reads]
        step = kind(choose, choose.choice(free), reads, known)
        known[step.output] = tuple(made.name for made in step.branches[0])
        steps.append(step)
    return steps


def _columns(
    choose: random.Random, reads: tuple[str, ...], known: dict[str, tuple[str, ...]], count: int
) -> tuple[Made, ...]:
    there = [(dataset, column) for dataset in reads for column in known[dataset]]
    made = []
    for number in range(count):
        of = tuple(choose.sample(there, choose.choice((1, 1, 2)) if len(there) > 1 else 1))
        sources = ", ".join(f"{dataset}.{column}" for dataset, column in of)
        if len(of) == 1 and choose.random() < 0.5:
            made.append(Made(f"c{number}", sources, of, "IDENTITY"))
        else:
            made.append(Made(f"c{number}", f"concat({sources}, '.')", of, "TRANSFORMATION"))
    return tuple(made)


def _select(columns: tuple[Made, ...], rest: str) -> str:
    return f"SELECT {', '.join(f'{made.sql} AS {made.name}' for made in columns)} FROM {rest}"


def _projection(choose, output, reads, known) -> Step:
    columns = _columns(choose, reads, known, choose.randint(1, 4))
    return Step(output, reads, (columns,), _select(columns, reads[0]))


def _join(choose, output, reads, known) -> Step:
    columns = _columns(choose, reads, known, choose.randint(2, 4))
    keys = [(dataset, choose.choice(known[dataset])) for dataset in reads]
    on = " = ".join(f"{dataset}.{column}" for dataset, column in keys)
    sql = _select(columns, f"{reads[0]} LEFT JOIN {reads[1]} ON {on}")
    influences = frozenset((dataset, column, "JOIN") for dataset, column in keys)
    return Step(output, reads, (columns,), sql, influences)


def _union(choose, output, reads, known) -> Step:
    count = choose.randint(1, 3)
    branches = tuple(_columns(choose, (dataset,), known, count) for dataset in reads)
    selects = (_select(columns, of) for columns, of in zip(branches, reads, strict=True))
    return Step(output, reads, branches, " UNION ALL ".join(selects))


def _grouping(choose, output, reads, known) -> Step:
    [dataset] = reads
    key = choose.choice(known[dataset])
    columns = [Made("c0", f"{dataset}.{key}", ((dataset, key),), "IDENTITY")]
    for number, column in enumerate(known[dataset], start=1):
        made = Made(f"c{number}", f"max({dataset}.{column})", ((dataset, column),), "AGGREGATION")
        columns.append(made)
    sql = f"{_select(tuple(columns), dataset)} GROUP BY {dataset}.{key}"
    return Step(output, reads, (tuple(columns),), sql, frozenset({(dataset, key, "GROUP_BY")}))


def main(lake: str) -> None:
    """Run each step on the files of the steps before."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    folders = {name: f"{lake}/{name}" for name in SOURCES}
    known: dict[str, tuple[str, ...]] = dict(SOURCES)
    for step in plan():
        for dataset in step.reads:
            schema = ", ".join(f"{column} string" for column in known[dataset])
            frame = spark.read.schema(schema).parquet(folders[dataset])
            frame.createOrReplaceTempView(dataset)
        folders[step.output] = f"{lake}/random/{step.output}"
        known[step.output] = tuple(made.name for made in step.branches[0])
        spark.sql(step.sql).write.mode("overwrite").parquet(folders[step.output])


if __name__ == "__main__":
    main(sys.argv[1])
