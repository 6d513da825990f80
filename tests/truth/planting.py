"""The data of TPC-H, and what is planted into the columns that partition it.

The values have what goes wrong in names of folders: nulls, blanks, empty strings, what is escaped
(``/``, ``%2F``, ``=``, ``:``, ``#``), what is not ASCII. Orders, items and parts have columns more
than TPC-H, as tables that are partitioned by what a date or a key says.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.truth.queries import Query

PARTITIONED_BY = {
    "region": (),
    "nation": ("n_regionkey",),
    "supplier": ("s_nationkey",),
    "customer": ("c_mktsegment",),
    "part": ("p_mfgr", "p_brand"),
    "partsupp": ("ps_lot",),
    "orders": ("o_quarter",),
    "lineitem": ("l_shipyear", "l_shipmode"),
}
_PLANTED = {
    "supplier": "replace (case when s_suppkey % 40 <> 0 then s_nationkey end as s_nationkey)",
    "customer": """replace (
        case
          when c_custkey % 11 = 0 then null
          when c_custkey % 13 = 0 then ' '
          when c_custkey % 17 = 0 then ''
          when c_mktsegment = 'FURNITURE' and c_custkey % 2 = 0 then 'HOME/GARDEN 50%2F'
          when c_mktsegment = 'MACHINERY' and c_custkey % 2 = 0 then 'a=b;c:d'
          when c_mktsegment = 'AUTOMOBILE' and c_custkey % 3 = 0 then 'zürich 東京'
          else c_mktsegment
        end as c_mktsegment)""",
    "part": "replace (case when p_partkey % 19 <> 0 then p_brand end as p_brand)",
    "partsupp": ", case when ps_partkey % 97 <> 0 then (ps_suppkey % 5 - 1)::int end as ps_lot",
    "orders": """,
        case when o_orderkey % 101 <> 0 then date_trunc('quarter', o_orderdate)::date end
        as o_quarter""",
    "lineitem": """replace (
        case
          when l_orderkey % 53 = 0 then 'AIR%2FSEA'
          when l_orderkey % 59 = 0 then null
          when l_orderkey % 61 = 0 then ' '
          else l_shipmode
        end as l_shipmode),
        case when l_orderkey % 67 <> 0 then year(l_shipdate)::int end as l_shipyear""",
}


def plant(folder: Path, scale: float) -> None:
    """Write one Parquet file for each table into a folder."""
    import duckdb

    raw = folder / "raw"
    generator = Path(sys.executable).with_name("tpchgen-cli")
    command = str(generator) if generator.exists() else "tpchgen-cli"
    options = ["parquet", "--scale-factor", str(scale), "--output-dir", str(raw)]
    subprocess.run([command, *options], check=True, stdout=subprocess.DEVNULL)
    for table in PARTITIONED_BY:
        duckdb.sql(f"""
            copy (select * {_PLANTED.get(table, "")} from '{raw}/{table}.parquet')
            to '{folder}/{table}.parquet' (format parquet)""")
    shutil.rmtree(raw)


SHARED = "base"
"""Home of the tables that all queries read."""


def copies(lake: Path, queries: Iterable[Query]) -> None:
    """Give each query its own copy of the tables; files are linked, which is quick."""
    for query in queries:
        for table in query.tables:
            shutil.copytree(lake / SHARED / table, lake / query.name / table, copy_function=_link)


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)
