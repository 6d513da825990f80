"""Queries that Spark answers from what it knows of a table, and opens none of its files.

Delta and Iceberg answer ``count()`` or ``max()`` from the statistics of files, where these are
enough. Such a plan has rows in the place of the scan. What the query is about was read all the
same, and only the analysed plan names it.
"""

import json
import re

from sparklineage_observer.relations import leaves_of, relations_of

_WHY = "Spark answered a query from statistics, and opened no file for it"
# How tables and files begin in the text of an analysed plan; one that is cut may hide some.
_RELATION = re.compile(
    r"\b(?:Relation|RelationV2|HiveTableRelation)\b|\d more characters|Truncated plan of"
)


def names_tables(execution):
    """Whether a query is about any table or files; most that have rows for a plan are not."""
    return bool(_RELATION.search(execution.analyzed().toString()))


def reads_without_scan(parts, execution):
    """Describe what a query without any scan is about; nothing if that is no table and no files."""
    if parts.scans or not any(rows.rows().size() for rows in parts.rows):
        return []
    found = {}
    for leaves, position, text in leaves_of([execution.analyzed()]):
        for relation in relations_of(leaves, position, text):
            path, table = relation["path"], relation["table"]
            if path or table:
                found[path, table] = {
                    "node": "LocalTableScanExec",
                    "table": table,
                    "roots": [path] if path else [],
                    "schema": json.loads(leaves.apply(position).schema().json()),
                    "cut": _WHY,
                }
    return list(found.values())
