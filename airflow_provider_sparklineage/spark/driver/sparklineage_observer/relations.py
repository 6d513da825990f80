"""Finds the paths and the tables that a leaf of a logical plan reads.

The texts of all leaves are read in one call, and show which leaves read tables or files. A query
that Spark answers from statistics has no scan, so :func:`reads_without_scan` finds the tables of
the query by its leaves.
"""

import json
import re

from sparklineage_observer.iceberg import at_branch
from sparklineage_observer.jvm import class_name, first_answer, items, option, texts
from sparklineage_observer.plans import CHANGE_FEED

_FOLDER = re.compile(r"/[^/=]+=[^/]*\Z")
_ID = re.compile(r"#(\d+)")
_MAX_ROOTS = 20  # of one relation


def leaves_of(plans):
    """List the leaves of logical plans and of all their subqueries.

    :param plans: a list of logical plans, Java objects
    :return: a list with a tuple for each leaf: the Scala Seq that contains the leaf, the leaf's
        position in the Seq, and the leaf's text
    """
    found = [plan.collectLeaves() for plan in plans]
    for plan in plans:
        found += [subquery.collectLeaves() for subquery in items(plan.subqueriesAll())]
    return [(leaves, *leaf) for leaves in found for leaf in enumerate(texts(leaves))]


def relations_of(leaves, position, text):
    """Describe the relations that a leaf reads.

    The arguments are those that :func:`leaves_of` gives for a leaf.

    :return: a list of ``{"path": …, "table": …, "ids": […]}``, where the ids are the numbers of the
        leaf's attributes, as in ``dt#12``; [] if the leaf reads neither a table nor files
    """
    if not text.startswith(("Relation ", "RelationV2", "HiveTableRelation ")):
        return []
    leaf = leaves.apply(position)
    ids = list(ids_of(leaf, text))
    return [{"path": path, "table": name, "ids": ids} for path, name in _places(leaf, text)]


def ids_of(plan, text="more fields"):
    """Give the ids of the output columns of a logical plan, as a tuple of ints.

    :param plan: the plan, a Java object
    :param text: the plan's text, if the plan is a leaf: then it need not be asked for its columns,
        unless the text leaves some of them out
    """
    if "more fields" in text:
        text = plan.output().mkString(",")
    return tuple(int(number) for number in _ID.findall(text))


def _places(leaf, text):
    """List (path, table name) of each relation that a leaf reads; [] if it reads too many folders.

    :param leaf: the leaf, a Java object
    :param text: the leaf's text
    """
    if text.startswith("RelationV2"):
        path, name = place_of(leaf.table())
        branch = first_answer(leaf, lambda r: r.table().branch() or r.options().get("branch"))
        return [(at_branch(path, branch), at_branch(name, branch))]
    if text.startswith("HiveTableRelation"):
        table = leaf.tableMeta()
        return [(table.location().toString(), name_of(table))]
    name = None if text.startswith("Relation [") else name_of(option(leaf.catalogTable()))
    if CHANGE_FEED in text:
        return [(path_of_feed(leaf.relation()), name)]
    try:
        index = leaf.relation().location()
        roots = texts(index.rootPaths())
    except Exception:  # the leaf reads neither files nor a table of files
        return [("", name)]
    if leaf.isStreaming() and class_name(index) == "InMemoryFileIndex":
        roots = {root.rpartition("/")[0] for root in roots}  # the roots of a batch are its files
    roots = sorted({_above_partitions(root) for root in roots})
    return [(root, name) for root in roots] if len(roots) <= _MAX_ROOTS else []


def path_of_feed(relation):
    """Give the path of the Delta table to which a change data feed belongs.

    :param relation: Delta's relation of the feed, a Java object
    """
    return relation.snapshotWithSchemaMode().snapshot().deltaLog().dataPath().toString()


def place_of(table):
    """Give (path, name) of a DataSource V2 table; a missing path is "", a missing name None.

    :param table: Spark's table, a Java object
    """
    if class_name(table) == "RowLevelOperationTable":
        table = table.table()
    # The first works for Iceberg, the second for Delta.
    path = first_answer(table, lambda t: t.table().location(), lambda t: t.path().toString())
    # Delta asks a session for the name, and the job may have stopped its session.
    return str(path or ""), first_answer(table, lambda t: t.name())


def name_of(table):
    """Give the full name of a CatalogTable, such as ``spark_catalog.shop.orders``.

    :return: None if ``table`` is None
    """
    return table.identifier().unquotedString() if table is not None else None


def _above_partitions(root):
    root = root.rstrip("/") or root
    while _FOLDER.search(root):
        root = _FOLDER.sub("", root)
    return root


# Where the statistics of files are enough, Delta and Iceberg answer ``count()`` or ``max()`` from
# the statistics. The physical plan of such a query has rows in place of a scan. The query has read
# the table nevertheless, and only the analysed plan names the table.


_FROM_STATISTICS = "Spark answered a query from statistics, and opened no file for it"
# The words that begin tables and files in the text of an analysed plan. A truncated text may hide
# such a word, so the marks of a truncated text match as well.
_RELATION = re.compile(
    r"\b(?:Relation|RelationV2|HiveTableRelation)\b|\d more characters|Truncated plan of"
)


def names_tables(execution, is_write):
    """Whether the text of a query's analysed plan names a table or files that are read.

    This is also True if the text is truncated, because the missing text may name one.

    :param execution: Spark's QueryExecution of the query
    :param is_write: whether the query is a write; then the first line of the text names the target
    """
    text = execution.analyzed().toString()
    return bool(_RELATION.search(text.partition("\n")[2] if is_write else text))


def reads_without_scan(parts, execution):
    """Describe as reads the tables and files of a query that Spark answered from statistics.

    The physical plan of such a query has rows in place of all its scans.

    :param parts: the :class:`.plans.PlanParts` of the query
    :param execution: Spark's QueryExecution of the query
    :return: a list of dicts, entries of a record's ``reads``; [] if the query has a scan, or names
        no tables and files
    """
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
                    "cut": _FROM_STATISTICS,
                }
    return list(found.values())
