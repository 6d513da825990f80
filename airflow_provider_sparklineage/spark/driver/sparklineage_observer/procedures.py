"""Records calls of Iceberg's procedures: maintenance, and moves of a table to another snapshot.

Since Spark 4 a procedure runs while its statement is analysed, and only a query for the result of
the statement is reported; its plan has the call. In Spark 3 the call is a command of its own. The
policy on all procedures is in docs/partitions.md.
"""

import re

from sparklineage_observer.iceberg import States, at_branch, table_of
from sparklineage_observer.jvm import class_name, each, first_answer, items, texts
from sparklineage_observer.records import guarded

_CALL = re.compile(r"^\W*Call\b", re.MULTILINE)
# The same data in other files, or less of what no reader sees.
_MAINTENANCE = {
    "RewriteDataFilesProcedure": "rewrite_data_files",
    "RewriteManifestsProcedure": "rewrite_manifests",
    "RewritePositionDeleteFilesProcedure": "rewrite_position_delete_files",
    "ExpireSnapshotsProcedure": "expire_snapshots",
    "RemoveOrphanFilesProcedure": "remove_orphan_files",
    "MigrateTableProcedure": "migrate",
}
_FAST_FORWARD = "FastForwardBranchProcedure"
_PUBLISHING = ("CherrypickSnapshotProcedure", "PublishChangesProcedure")
_MOVES = {
    "RollbackToSnapshotProcedure": "rollback_to_snapshot",
    "RollbackToTimestampProcedure": "rollback_to_timestamp",
    "SetCurrentSnapshotProcedure": "set_current_snapshot",
    "CherrypickSnapshotProcedure": "cherrypick_snapshot",
    "PublishChangesProcedure": "publish_changes",
    _FAST_FORWARD: "fast_forward",
}
_IMPORTS = ("AddFilesProcedure", "SnapshotTableProcedure")


class Procedures:
    """Records the calls of procedures, each once.

    :param snapshots: the :class:`.iceberg.Snapshots` of the application
    """

    def __init__(self, snapshots):
        self._snapshots = snapshots
        self._seen = set()

    def observe(self, record, execution, classes, budget):
        """Add the calls in a query's plan to the query's record.

        :param record: the query's record, which is changed
        :param execution: Spark's QueryExecution of the query
        :param classes: the driver's :class:`.jvm.Classes`
        :param budget: the limits of time and number, a :class:`.records.Budget`
        :return: whether the snapshots of a table are to be looked at, because files were imported
        """
        analyzed = execution.analyzed()
        text = analyzed.toString()
        if not _CALL.search(text):
            return False
        is_import = False
        for plan, rows in _calls(analyzed):
            key = (classes.identity(plan), plan.toString())
            if key not in self._seen:
                self._seen.add(key)
                call = _Call(plan, rows, execution)
                guarded(record, call.kind, self._add, record, call, classes, budget)
                is_import = is_import or call.kind in _IMPORTS
        return is_import

    def _add(self, record, call, classes, budget):
        if call.kind in _MAINTENANCE:
            name = call.arguments.get("table")
            table = call.table(name)
            path = table.location().rstrip("/") if table is not None else ""
            operation = _MAINTENANCE[call.kind]
            entry = {"path": path, "table": call.name_of(name), "operation": operation}
            record.setdefault("maintenance", []).append(entry)
        elif call.kind in _IMPORTS:
            self._import(record, call)
        elif call.kind in _MOVES:
            self._move(record, call, classes, budget)

    def _move(self, record, call, classes, budget):
        table = call.table(call.arguments.get("table"))
        branch = call.arguments.get("branch") if call.kind == _FAST_FORWARD else "main"
        if table is None or branch is None:
            return
        table.refresh()
        old, new = call.move(table, record["started"], record["ended"])
        if new is None:
            return
        write = self._snapshots.moved(table, old, new, branch, classes, budget)
        if write is None:
            return
        write["operation"] = _MOVES[call.kind]
        record["writes"].append(write)
        if call.kind == _FAST_FORWARD:
            record["reads"].append(_read_of_branch(write, table, call.arguments.get("to")))

    def _import(self, record, call):
        """Record the source of files that a table takes over, which are not copied."""
        table = call.table(call.arguments.get("table"))
        source = call.source(call.arguments.get("source_table"))
        if table is not None:
            self._snapshots.accessed(table)
        if source is not None:
            path, name = source
            cut = "a procedure of Iceberg read it out of Spark's sight"
            read = {"node": call.kind, "table": name, "roots": [path] if path else [], "cut": cut}
            record["reads"].append({**read, **_copied(table)} if table is not None else read)


def _read_of_branch(write, table, branch):
    base = at_branch(table.location().rstrip("/"), branch)
    layouts = [{**layout, "base": base} for layout in write["layouts"]]
    name = at_branch(table.name(), branch)
    read = {"node": _FAST_FORWARD, "table": name, "format": "iceberg", "roots": [base]}
    return {**read, "branch": branch, "chosen": True, "layouts": layouts, **_copied(table)}


def _copied(table):
    columns = [
        {"name": column.name(), "type": column.type().toString()}
        for column in each(table.schema().columns())
    ]
    return {"copied": True, "schema": {"type": "struct", "fields": columns}}


def _calls(analyzed):
    """Yield the calls in an analysed plan, each with the rows of its result, or None.

    :param analyzed: the logical plan, a Java object
    """
    if class_name(analyzed) == "Call":
        yield analyzed, None
        return
    for leaf in items(analyzed.collectLeaves()):
        if class_name(leaf) == "CommandResult":
            plan = leaf.commandLogicalPlan()
            if class_name(plan) == "Call":
                yield plan, leaf.rows()


def _catalog_of(procedure):
    """Give the catalog of a procedure, which no public method gives before Spark 4."""
    kind = procedure.getClass()
    while kind.getSimpleName() != "BaseProcedure":
        kind = kind.getSuperclass()
    field = kind.getDeclaredField("tableCatalog")
    field.setAccessible(True)
    return field.get(procedure)


class _Call:
    """The call of a procedure, with methods that find its tables and its result.

    :param plan: the logical plan ``Call``, a Java object
    :param rows: the rows of the result, a Scala Seq; None where they are not known
    :param execution: Spark's QueryExecution
    """

    def __init__(self, plan, rows, execution):
        self._rows = rows
        self._session = execution.sparkSession()
        resolved = plan.procedure()
        procedure = first_answer(resolved, lambda r: r.procedure()) or resolved
        self.kind = class_name(procedure)
        self._catalog = first_answer(
            resolved,
            lambda r: r.catalog().name(),
            lambda _: _catalog_of(procedure).name(),  # before Spark 4
        )
        names = [parameter.name() for parameter in procedure.parameters()]
        self.arguments = dict(zip(names, texts(plan.args())))

    def name_of(self, name):
        """Give the full name of a table that an argument names."""
        has_catalog = name.startswith(f"{self._catalog}.") or not self._catalog
        return name if has_catalog else f"{self._catalog}.{name}"

    def table(self, name):
        """Give the Iceberg table of a name; None if there is none, or the name is None."""
        leaf = self._leaf(self.name_of(name)) if name else None
        return first_answer(leaf, lambda relation: table_of(relation.table()))

    def source(self, name):
        """Give (path, name) of a table of Spark or a folder (``parquet.`/path```); None without.

        The path is "" if it is not known.
        """
        parts = re.findall(r"`([^`]*)`|([^.`]+)", name or "")
        words = [quoted or plain for quoted, plain in parts]
        if len(words) == 2 and "/" in words[1]:
            return words[1], None
        leaf = self._leaf(name) if name else None
        path = first_answer(
            leaf,
            lambda r: r.tableMeta().location().toString(),
            lambda r: r.catalogTable().get().location().toString(),
            lambda r: r.relation().location().rootPaths().apply(0).toString(),
        )
        return (path or "", name) if words else None

    def _leaf(self, name):
        analyzed = first_answer(self._session, lambda s: s.table(name).queryExecution().analyzed())
        return first_answer(analyzed, lambda plan: plan.collectLeaves().apply(0))

    def move(self, table, started, ended):
        """Give the ids of the snapshots before and after a move; None where there is none.

        :param table: Iceberg's table, a Java object
        :param started: the time in ms when the query began
        :param ended: the time in ms when it had ended
        """
        row = self._rows.apply(0) if self._rows is not None and self._rows.size() else None
        if row is None:
            return _latest_move(table, started, ended)
        first = 1 if self.kind == _FAST_FORWARD else 0
        ids = [None if row.isNullAt(i) else row.getLong(i) for i in (first, first + 1)]
        if self.kind in _PUBLISHING:
            new = ids[1]
            return table.snapshot(new).parentId(), new
        return ids


def _latest_move(table, started, ended):
    """Find the move in a table's history that was made during a query.

    :param table: Iceberg's table, a Java object
    :param started: the time in ms when the query began
    :param ended: the time in ms when it had ended
    """
    before, during = None, []
    for at, identity in States(table):
        if at < started - 1:
            before = identity
            break
        if at <= ended + 1:
            during.append(identity)
    return (before, during[0]) if during else (None, None)
