"""Describes the target of a write command and, where it tells more than the listener, its plan.

The plan is Spark's own analysed plan, as JSON. The JSON does not name the relations that the plan's
leaves read, so each leaf is asked for its relations. A write of files is described in the record's
``writes`` already, so its command is recorded only if the plan is needed. A command that writes a
table is always recorded, with its target.

A call through py4j costs a fraction of a millisecond, and the JSON of a plan a few milliseconds.
"""

import json
import re

from sparklineage_observer import frames
from sparklineage_observer.delta import path_of
from sparklineage_observer.jvm import (
    class_name,
    command_at,
    first_answer,
    items,
    names_of,
    option,
    texts,
)
from sparklineage_observer.plans import CHANGE_FEED
from sparklineage_observer.relations import ids_of, leaves_of, name_of, place_of, relations_of

_MORE = re.compile(r"\.\.\. (\d+) more fields")
_JVM = re.compile(r',"jvmId":"[^"]*"')
_BYTES = 400  # the rough size of one attribute in the plan's JSON

_FILES = "InsertIntoHadoopFsRelationCommand"
_HIVE = "InsertIntoHiveTable"
_SAVE = "SaveIntoDataSourceCommand"
TABLE_AS_SELECT = "CreateDataSourceTableAsSelectCommand"
# Commands of Delta; they commit nothing if no row matches their condition.
DELTA_CHANGES = ("MergeIntoCommand", "UpdateCommand", "DeleteCommand")
_DELTA_PARTITIONS = "DeltaDynamicPartitionOverwriteCommand"
_V2_WRITES = ("AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic")
_ROW_LEVEL = ("ReplaceData", "WriteDelta", "InsertOnlyMerge")
_CREATIONS = ("CreateTableAsSelect", "ReplaceTableAsSelect")
# Commands that the listener does not report, or reports with wrong columns.
_UNREPORTED = (*DELTA_CHANGES, _DELTA_PARTITIONS, *_ROW_LEVEL, *_CREATIONS)
_KINDS = {_FILES, _HIVE, _SAVE, TABLE_AS_SELECT, *_V2_WRITES, *_UNREPORTED}
# Parts of a plan's text for which the listener reports too few columns, or none (docs/limits.md).
_LOST = re.compile(
    r"\)#\d|In(?:Pandas|Arrow)|TransformWithState"  # functions of Python
    r"|Expand|Except|Intersect|scalar-subquery#| FILTER \(|WithCTE|named_struct\("
    r"|\bstruct\(|Generate (?:stack|inline)"  # the listener mixes the values of their columns
    r"|NearestBy"  # so it does here, of which Spark makes an aggregate
    r"|LogicalRDD|ExternalRDD|LocalRelation|OneRowRelation|Range|InMemoryRelation"
    r"|(?:\[|, )[^#\[\]]* AS |Generate [^#\n]*, (?:true|false), "  # made of no column
    r"|more fields"  # columns that the text leaves out
    rf"|{re.escape(CHANGE_FEED)}"
)

# Parts of a plan's text with expressions, by which columns are described, and with partition
# columns, which the listener takes for expressions. Its own descriptions are off, because they can
# take all memory of the driver (docs/columns.md).
_DESCRIBES = re.compile(r" AS |Filter |Join |\AInsert[^\n]*, \[[^\]\n]*#")

_LEFT_OUT = '"projections":null'
_FIELDS = ("query", "source", "target")  # the plans that are fields of a command and no children


class _TooLargeError(Exception):
    """Raised when a plan exceeds a limit; the message names the limit."""


class _Room:
    """The bytes that are left for the JSON of plans, within the :class:`.records.Limits`.

    share: the share of the limit of all plans that these plans may take.
    """

    def __init__(self, limits, share=1):
        self._limits = limits
        self._most = limits.plans_bytes // share
        self._bytes = 0

    def why_not(self, count):
        """Say why a plan of so many bytes is too large; "" if it is not."""
        if count > self._limits.plan_bytes:
            limit = self._limits.plan_bytes
            return f"a plan of {count} bytes or so is left out, for more than {limit}"
        if self._bytes + count > self._most:
            return f"all plans together exceed {self._most} bytes"
        return ""

    def take(self, count):
        """Take so many bytes; raise :class:`_TooLargeError` if they are too many."""
        cut = self.why_not(count)
        if cut:
            raise _TooLargeError(cut)
        self._bytes += count


class Commands:
    """Describes write commands, without the plans that exceed the limits."""

    def __init__(self, limits):
        self._limits = limits
        self._room = _Room(limits)
        self._room_for_frames = _Room(limits)
        self._room_for_texts = _Room(limits, share=4)
        self.frames = frames.Frames()

    def observe(self, kind, execution, is_hidden, budget, position=None):
        """Describe the write command of a query.

        :param kind: the class name of the command; None if it is not known
        :param execution: Spark's QueryExecution of the query
        :param is_hidden: a function that tells whether the listener drops the query's events; then
            the plan is recorded as if the listener reported too little
        :param budget: the query's time limit, a :class:`.records.Budget`
        :param position: the place of the command among those of a multi-insert; else None
        :return: a dict with ``node`` and ``target`` (:meth:`target_of`). If the listener reports
            too little, it also has ``plan``, ``relations``, ``schema`` and ``columns``; or ``cut``,
            the reason, if the plan exceeds a limit. It has a plan, and ``describes``, if only the
            texts of the plan's expressions are needed. None if :meth:`target_of` would give None,
            or if the command writes files and needs no plan
        """
        write = _write_of(kind, execution, position)
        if write is None:
            return None
        kind = write.kind
        if kind == TABLE_AS_SELECT:  # a query below this one writes the files
            return write.record()
        text = (write.query if kind == "MergeIntoCommand" else write.plan).toString()
        is_needed = self._is_needed(write, text) or is_hidden()
        leaves, cut = [], ""
        # The text has a line for each leaf, so a text with few lines has not too many leaves.
        if is_needed or kind == _SAVE or text.count("\n") > self._limits.leaves:
            leaves = write.leaves()
            cut = self._too_many(leaves)
            is_needed = is_needed or bool(cut)
            cut = cut or self._room.why_not(_length(text))
        describes = not is_needed and bool(_DESCRIBES.search(text))
        if not is_needed and not describes and kind in (_FILES, _HIVE):
            return None
        record = write.record()
        if record is None:
            return None
        if is_needed and cut:
            record["cut"] = cut
        elif is_needed:
            budget.check()
            record.update(self._of_write(write, leaves, budget, self._room))
        elif describes and not self._room_for_texts.why_not(_length(text)):
            budget.check()
            leaves = leaves or write.leaves()
            described = self._of_write(write, leaves, budget, self._room_for_texts)
            if "plan" in described and "cut" not in described:
                record.update(described, describes=True)
        return record if len(record) > 2 or kind not in (_FILES, _HIVE) else None

    @staticmethod
    def target_of(kind, execution, position=None):
        """Describe the write command of a query by its target alone.

        :param kind: the class name of the command; None if it is not known
        :param execution: Spark's QueryExecution of the query
        :param position: the place of the command among those of a multi-insert; else None
        :return: ``{"node": kind, "target": {"path": …, "table": …}}``; None if the query has no
            known write command, if the command is part of another command, or if its target has
            neither a path nor a name
        """
        write = _write_of(kind, execution, position)
        return write and write.record()

    def of_batch(self, record, query, budget):
        """Add plan, schema and columns to the record of the command that writes a stream's batch.

        A plan that exceeds a limit is left out, and ``cut`` in the record has the reason.

        :param record: the record, which has the command's target; it is changed and returned
        :param query: the plan of the rows that the batch writes
        :param budget: the batch's time limit, a :class:`.records.Budget`
        """
        schema = json.loads(query.schema().json())
        record.update(schema=schema, columns=[field["name"] for field in schema["fields"]])
        leaves = leaves_of([query])
        too_much = self._too_many(leaves) or self._room.why_not(_length(query.toString()))
        if too_much:
            return {**record, "cut": too_much}
        return {**record, **self._described(query, leaves, budget, self._room)}

    def keep_frame(self, plan, budget):
        """Keep the plan of a frame whose rows Spark has as an RDD, for the plans that read it.

        :param plan: the analysed plan that made the rows, a Java object
        :param budget: the time limit of the query or batch, a :class:`.records.Budget`
        """
        self.frames.add(ids_of(plan), lambda: self._frame(plan, budget))

    def _frame(self, plan, budget):
        leaves = leaves_of([plan])
        room = self._room_for_frames
        cut = self._too_many(leaves) or room.why_not(_length(plan.toString()))
        if cut:
            return {"cut": cut}
        try:
            nodes, relations, below = self._read(plan, leaves, budget, room)
        except _TooLargeError as error:
            return {"cut": str(error)}
        return {"plan": json.dumps(nodes), "relations": relations, "frames": below}

    def _of_write(self, write, leaves, budget, room):
        described = self._described(write.plan, leaves, budget, room)
        if "plan" in described:
            columns = write.columns()
            described.update(schema=write.schema(columns), columns=columns)
        return described

    def _is_needed(self, write, text):
        everything = self._limits.plans == "all"
        return everything or write.kind in _UNREPORTED or _LOST.search(text)

    def _too_many(self, leaves):
        count, limit = len({text for *_, text in leaves}), self._limits.leaves
        if count <= limit:
            return ""
        return f"a plan that reads {count} relations is left out, for more than {limit}"

    def _described(self, plan, leaves, budget, room):
        """Give the parts ``plan`` and ``relations`` of a command's record, as a dict.

        If the plan is too large, the dict has only ``cut``, the reason. If only the plan of a
        frame in it is too large, the dict has ``cut`` as well. The dict is empty if a
        relation of the plan has neither path nor name, such as a table read over JDBC: the listener
        reports such a relation.

        :param plan: the logical plan, a Java object
        :param leaves: the leaves of the plan, as :func:`.relations.leaves_of` gives them
        :param budget: the time limit of the query or batch, a :class:`.records.Budget`
        :param room: the :class:`_Room` for the plan and those of its frames
        """
        try:
            nodes, found, below = self._read(plan, leaves, budget, room)
            below = frames.with_needed(below)
            room.take(sum(len(frame.plan) for frame in below))
        except _TooLargeError as error:
            return {"cut": str(error)}
        if not all(relation["path"] or relation["table"] for relation in found):
            return {}  # the listener names this relation of a database, but the plan does not
        for frame in below:
            found += frame.relations
        described = {"plan": frames.defined(below, nodes), "relations": found}
        cuts = [frame.cut for frame in below if frame.cut]
        return {**described, "cut": cuts[0]} if cuts else described

    def _read(self, plan, leaves, budget, room):
        """Read a plan, with references in place of leaves that are frames (:mod:`.frames`).

        :param plan: the logical plan, a Java object
        :param leaves: the leaves of the plan, as :func:`.relations.leaves_of` gives them
        :param budget: the time limit of the query or batch, a :class:`.records.Budget`
        :param room: the :class:`_Room` for the plan
        :return: a tuple: the parsed JSON, the relations that the plan reads, and the frames
        :raise _TooLargeError: if the plan exceeds a limit
        """
        text = _JVM.sub("", plan.toJSON())
        room.take(len(text))
        nodes = json.loads(text)
        nodes[0].pop("analyzedQuery", None)  # this repeats the child, in an earlier form
        _fill_projections(nodes, text, plan, budget)
        relations = {}
        for *place, leaf in leaves:
            budget.check()
            if leaf not in relations:
                relations[leaf] = relations_of(*place, leaf)
        of_leaves = self.frames.of_leaves(leaves, lambda plan: self._frame(plan, budget))
        frames.refer(nodes, of_leaves)
        listed = [relation for of in relations.values() for relation in of]
        return nodes, listed, list(of_leaves.values())


def _length(text):
    """Estimate the length of the JSON of a plan, in bytes.

    :param text: the plan's text, as Spark prints it
    """
    return (text.count("#") + sum(map(int, _MORE.findall(text)))) * _BYTES


def _fill_projections(nodes, text, plan, budget):
    """Fill in the projections of ``Expand`` nodes that the JSON of a plan lacks.

    Spark writes null for them if the node is that of ``unpivot`` or ``melt`` of a DataFrame.

    :param nodes: the parsed JSON of the plan, which is changed
    :param text: the JSON as text
    :param plan: the plan, a Java object
    :param budget: the time limit of the query, a :class:`.records.Budget`
    """
    if _LEFT_OUT not in text:
        return
    for at, path in enumerate(_paths(nodes)):
        # ReplaceData and WriteDelta have projections of another kind, also null.
        is_expand = nodes[at]["class"].rpartition(".")[2] == "Expand"
        if is_expand and nodes[at].get("projections", ()) is None:
            node = plan
            for position in path:
                node = node.children().apply(position)
            nodes[at]["projections"] = _projections(node, budget)
    for field in _FIELDS:
        tree = nodes[0].get(field)
        if isinstance(tree, list) and tree and isinstance(tree[0], dict):
            _fill_projections(tree, text, getattr(plan, field)(), budget)


def _paths(nodes):
    """Yield for each node the positions among children that lead to it from the root, as a tuple.

    :param nodes: the parsed JSON of a plan, in which each node is followed by its children
    """
    waiting = [()]
    for node in nodes:
        path = waiting.pop()
        yield path
        waiting.extend((*path, at) for at in reversed(range(node["num-children"])))


def _projections(node, budget):
    """Give the projections of an ``Expand`` node, as Spark would write them as JSON.

    Equal expressions are asked for once; of literals in one column, only the first, because the
    name of an unpivoted column is in no lineage.

    :param node: the node, a Java object
    :param budget: the time limit of the query, a :class:`.records.Budget`
    """
    known = {}
    found = []
    for projection in items(node.projections()):
        budget.check()
        row = []
        for at, text in enumerate(texts(projection)):
            key = text if "#" in text else at
            if key not in known:
                known[key] = json.loads(projection.apply(at).toJSON())
            row.append(known[key])
        found.append(row)
    return found


def _write_of(kind, execution, position):
    """Give the write command of a query; None if it is not known, or part of another command.

    :param kind: the class name of the command; None if it is not known
    :param execution: Spark's QueryExecution of the query
    :param position: the place of the command among those of a multi-insert; else None
    :return: a :class:`_Write` or None
    """
    if kind and kind not in _KINDS:
        return None
    plan = command_at(position, execution.analyzed())
    kind = kind or class_name(plan)
    write = _Write(kind, plan, execution) if kind in _KINDS else None
    return None if write is None or write.is_part else write


class _Write:
    """A write command of a query's plan, with methods that read its target, query and columns."""

    def __init__(self, kind, plan, execution):
        self.kind = kind
        self.plan = plan
        self._execution = execution
        self.relation = plan.table() if kind in (*_V2_WRITES, *_ROW_LEVEL) else None
        self._table = None
        self.is_part = False
        """Whether the command writes nothing, or writes the rows of a table that another command
        creates."""
        if self.relation is not None:
            self._table = self.relation.table()
            self.is_part = class_name(self._table).startswith(("Staged", "NoopTable"))

    @property
    def query(self):
        """The plan of the rows that are written, merged or changed."""
        if self.kind == "MergeIntoCommand":
            return self.plan.source()
        return self.plan.target() if self.kind in DELTA_CHANGES else self.plan.query()

    def record(self):
        """Describe the command as ``{"node": …, "target": {"path": …, "table": …}}``.

        :return: None if the target has neither a path nor a name
        """
        path, table = self.target()
        if not path and not table:
            return None
        return {"node": self.kind, "target": {"path": path, "table": table}}

    def target(self):
        """Give the target as (path, table name); a missing path is "", a missing name None."""
        if self.kind == TABLE_AS_SELECT:
            return _made(self.plan.table().identifier(), self._execution.sparkSession())
        if self.relation is not None:
            return place_of(self._table)
        if self.kind in _CREATIONS:
            return _created(self.plan.name())
        if self.kind == _FILES:
            path = self.plan.outputPath().toString()
            return path, name_of(option(self.plan.catalogTable()))
        if self.kind == _HIVE:
            table = self.plan.table()
            return table.location().toString(), name_of(table)
        if self.kind == _DELTA_PARTITIONS:
            table = self.plan.deltaTable()
            return table.path().toString(), table.name()
        path = path_of(self.plan, self._execution.sparkSession()) or ""
        return path, None if self.kind == _SAVE else name_of(option(self.plan.catalogTable()))

    def leaves(self):
        """Give the leaves of the command's plan and of each subquery of the plan.

        Some commands do not have their query as a child, so Spark finds no leaves below them. For
        these commands, the leaves of the query are given.

        :return: the result of :func:`.relations.leaves_of`
        """
        plans = [self.plan]
        if self.kind in (*DELTA_CHANGES, *_CREATIONS, _SAVE):
            plans = [self.query]
        if self.kind == "MergeIntoCommand":
            plans.append(self.plan.target())
        return leaves_of(plans)

    def columns(self):
        """List the names of the target's columns, in the query's order; [] for a DELETE."""
        if self.kind == "DeleteCommand":
            return []
        if self.kind in (_FILES, _HIVE):
            return texts(self.plan.outputColumnNames())
        query = self.plan.target() if self.kind in DELTA_CHANGES else self.query
        return names_of(query.output())

    def schema(self, columns):
        """Give the schema of the target, as the parsed JSON of Spark's StructType.

        :param columns: the names of the target's columns, in the order of the query's columns
        """
        if self.relation is not None:
            return json.loads(self.relation.schema().json())
        if self.kind in DELTA_CHANGES:
            # A MERGE may add columns; its target is then the table as it was before.
            evolved = first_answer(self.plan, lambda plan: option(plan.migratedSchema()))
            return json.loads((evolved or self.plan.target().schema()).json())
        schema = json.loads(self.query.schema().json())
        for name, field in zip(columns, schema["fields"]):
            field["name"] = name
        return schema


def _created(resolved):
    """Give (path, name) of a table that a V2 command created.

    The path is "" if the table does not exist any more.

    :param resolved: Spark's ``ResolvedIdentifier`` of the table
    """
    catalog, name = resolved.catalog(), resolved.identifier()
    place = first_answer(catalog, lambda c: place_of(c.loadTable(name)))
    return place[0] if place else "", f"{catalog.name()}.{name.toString()}"


def _made(identifier, session):
    """Give (path, name) of a table in Spark's own catalog; the path is "" if it does not exist.

    :param identifier: Spark's ``TableIdentifier`` of the table
    :param session: the Java SparkSession
    """

    def place(session):
        table = session.sessionState().catalog().getTableMetadata(identifier)
        return table.location().toString(), name_of(table)

    return first_answer(session, place) or ("", identifier.unquotedString())
