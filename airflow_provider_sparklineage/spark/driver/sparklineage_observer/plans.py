"""Finds the scans, write commands and Python UDFs of a physical plan.

The plan's text, which costs only one call, shows whether the plan has any of them; if not, its
nodes are not visited. The walk through a plan enters adaptive plans, query stages, caches, reused
exchanges and sub-queries. It does not enter the result of a command that was executed already
(``CommandResultExec``), because the command was a query of its own.
"""

import re

from sparklineage_observer.jvm import first_answer, items, kind_of

# The texts with which the recorded nodes begin in the text of a plan.
CHANGE_FEED = "DeltaCDFRelation("
"""The word with which the change data feed of a Delta table begins in the text of a plan. It is a
relation without files; Delta reads them in queries of its own."""
FEED_SCAN = "RowDataSourceScanExec"
_V2_WRITES = (
    "AppendData",
    "OverwriteByExpression",
    "OverwritePartitionsDynamic",
    "ReplaceData",
    "WriteDelta",
    "InsertOnlyMerge",  # since Spark 4.2; before, such a MERGE is an AppendData
    "DeleteFromTable",
    "TruncateTable",
    "AtomicCreateTableAsSelect",
    "AtomicReplaceTableAsSelect",
)
_READS = re.compile(f"FileScan |Scan hive |BatchScan|Scan {re.escape(CHANGE_FEED)}")
_WRITES = re.compile(
    f"ExecV1|{'|'.join(_V2_WRITES)}"
    # The excluded commands write no data, or are about a table that another command will not name.
    r"|Execute (?!(?:Add|Describe|Explain|List|Reset|Set|Show|AlterView|CreateView|DropTable"
    r"|(?:Alter|Create|Drop)(?:Database|Function))\w*Command\b)"
)
_ROWS = re.compile("LocalTableScan (?!<empty>)")
_LIMIT = re.compile("Limit|CollectTail")
_CURSOR = "OpenCursor"
_EMPTY = re.compile("LocalTableScan <empty>|EmptyRelation")
_UDF = "EvalPython"
_CUT = re.compile(r"\d more characters|Truncated plan of")  # a job can limit the length of the text

_SCANS = ("FileSourceScanExec", "HiveTableScanExec", "BatchScanExec")
_CACHE = "InMemoryRelation"  # below a cache of any name
_ANYTHING = f"FileScan Execute Subquery Limit {_UDF} {_CACHE} {CHANGE_FEED}"
_COMMANDS = ("DataWritingCommandExec", "ExecutedCommandExec")
_V2_NODES = tuple(f"{name}Exec" for name in _V2_WRITES)
ADAPTIVE = "AdaptiveSparkPlanExec"
_CACHED = "InMemoryTableScanExec"
_REUSED = ("ReusedExchangeExec", "ReusedSubqueryExec")
_MAX_DEPTH = 60  # levels of plans in plans; real plans have a handful


class Scan:
    """A scan of a plan, with facts from the nodes above the scan.

    kind: the class name of the scan's node; node: the node, a Java object; filters: the SQL of the
    predicates that a V2 scan did not take over from Spark; is_limited: whether the query may have
    ended before the whole scan was read; is_alone: whether the plan has no other scan; is_unread:
    whether an adaptive plan left the scan out before it began; is_again: whether an earlier query
    ran the same plan.
    """

    def __init__(self, kind, node, filters=(), is_limited=False, is_unread=False):
        self.kind = kind
        self.node = node
        self.filters = filters
        self.is_limited = is_limited
        self.is_alone = True
        self.is_unread = is_unread
        self.is_again = False


class PlanParts:
    """The parts of a plan that read or write.

    kind: the class name of the plan's root; position: the place of the plan's command among the
    commands of a multi-insert, None for any other plan; has_cache: whether the plan may read a
    cache; scans: a list of :class:`Scan`; rows: the
    leaves that have rows in place of a scan (``LocalTableScanExec``); commands: a list of ``(class
    name, command)`` for V1 writes; v2_writes: a list of ``(class name, node)`` for V2 writes; udfs:
    a list of dicts, one for each Python UDF: ``{"result", "function", "columns", "sql"}``, where
    columns are those in the arguments; may_call: whether a procedure may have been called; unseen:
    a text that says which rows the plan reads out of sight, "" if there are none.
    """

    def __init__(self, kind="", position=None):
        self.kind = kind
        self.position = position
        self.has_cache = False
        self.scans = []
        self.rows = []
        self.commands = []
        self.v2_writes = []
        self.udfs = []
        self.may_call = False
        self.unseen = ""

    def has_data(self):
        """Whether the plan has a part that reads or writes data."""
        parts = (self.scans, self.rows, self.commands, self.v2_writes, self.unseen)
        return any(parts)


def parts_of(plan, identity, is_about_tables=lambda _: False):
    """Collect the parts of a physical plan.

    The plan of a multi-insert (``FROM … INSERT … INSERT …``) is a union of commands. Each of these
    commands has parts of its own.

    :param plan: the physical plan, a Java object
    :param identity: Java's ``System.identityHashCode``, which distinguishes nodes
    :param is_about_tables: a function that tells whether the query names tables that it reads; it
        is given whether the query is a write, which names its target first. It is called only if
        all leaves have rows in place of scans: if the query names tables, Spark may have answered
        it from a table's statistics. Without the function, such rows are not collected.
    :return: a list of :class:`PlanParts`: one for each command of a multi-insert, otherwise one
    """
    found = [PlanParts()]
    text = plan.toString()
    found[0].may_call = "CommandResult" in text or text.startswith("Call")
    if text.startswith("CommandResult"):
        return found
    if text.startswith(_CURSOR):
        found[0].unseen = "the rows of a cursor of a SQL script, whose query Spark does not report"
        return found
    if _CUT.search(text):
        text = _ANYTHING
    is_write = bool(_WRITES.search(text))
    is_read = bool(_READS.search(text) or (_ROWS.search(text) and is_about_tables(is_write)))
    if is_read or is_write:
        _Walk(found, identity, text, is_read=is_read, is_write=is_write).collect(plan)
    for parts in found:
        parts.has_cache = _CACHE in text
        are_alone = sum(not scan.is_unread for scan in parts.scans) == 1
        for scan in parts.scans:
            scan.is_alone = are_alone
    return found


class _Walk:
    """Collects the parts of a plan and of the plans inside it.

    The plan's text shows which kinds of nodes the plan has; the walk looks for no other kinds.

    :param found: a list of one :class:`PlanParts`, to which the parts are added; if the plan is a
        multi-insert, the parts of its second and each later command are appended to the list
    :param identity: Java's ``System.identityHashCode``, which distinguishes nodes
    :param text: the plan's text
    :param is_read: whether the plan has scans, or may have rows in place of scans
    :param is_write: whether the plan may have a write
    """

    def __init__(self, found, identity, text, is_read, is_write):
        self._all = found
        self._found = found[0]
        self._identity = identity
        self._seen = set()
        self._has_subqueries = "ubquery" in text
        self._has_feeds = CHANGE_FEED in text
        self._has_empty = bool(_EMPTY.search(text))
        self._has_unions = "Union" in text and is_write
        self._has_limits_or_udfs = bool(_LIMIT.search(text)) or _UDF in text
        # If a plan only writes, and reads nothing, its leaves are not needed.
        self._has_leaves = is_read or _UDF in text

    def collect(self, plan, depth=0, is_limited=False, kind=None):
        if depth > _MAX_DEPTH or self._is_seen(plan):
            return
        kind = kind or kind_of(plan)
        self._found.kind = self._found.kind or kind
        if _is_around(kind):
            self.collect(_inner(plan, kind), depth + 1, is_limited)
            if kind == ADAPTIVE and self._has_leaves:
                begun = []
                for stage in _stages(plan):
                    if stage.isMaterialized():
                        self.collect(stage, depth + 1)
                    else:
                        begun.append(stage)
                if self._has_empty:
                    self._collect_unread(plan, begun)
        else:
            self._look_at(plan, kind, depth, is_limited)

    def _is_seen(self, plan):
        if not (self._has_leaves or self._has_subqueries):
            return False  # then each plan contains at most one other plan, and none is met twice
        number = self._identity(plan)
        is_seen = number in self._seen
        self._seen.add(number)
        return is_seen

    def _look_at(self, plan, kind, depth, is_limited):
        if kind == "UnionExec" and self._has_unions:
            commands = _commands_of(plan)
            if commands:
                self._look_at_each(commands, depth)
                return
        if kind in _COMMANDS:
            command = plan.cmd()
            self._found.commands.append((kind_of(command), command))
        elif _is_v2_write(kind):
            self._found.v2_writes.append((kind, plan))
        if self._has_subqueries:
            for subquery in items(plan.subqueriesAll()):
                self.collect(subquery, depth + 1)
        text = plan.toString() if self._has_limits_or_udfs else ""
        if _UDF in text:
            _collect_udfs(plan, self._found)
        if self._has_leaves:
            has_limit = is_limited or bool(_LIMIT.search(text))
            self._collect_leaves(plan, depth, is_limited, has_limit)

    def _collect_unread(self, plan, begun):
        """Add the scans that an adaptive plan left out, because a join with no rows needs none.

        :param plan: the ``AdaptiveSparkPlanExec``
        :param begun: the stages that had begun and not ended; they may have read something
        """
        known = {self._relation(scan.kind, scan.node) for scan in self._found.scans}
        for stage in begun:
            leaves = ((kind_of(leaf), leaf) for leaf in items(stage.plan().collectLeaves()))
            known |= {self._relation(kind, leaf) for kind, leaf in leaves if kind in _SCANS}
        initial = first_answer(plan, lambda p: items(p.initialPlan().collectLeaves()))
        for leaf in initial or ():
            kind = kind_of(leaf)
            if kind in _SCANS and self._relation(kind, leaf) not in known:
                self._found.scans.append(Scan(kind, leaf, is_unread=True))

    def _relation(self, kind, node):
        """Give a number that scans of the same relation have in common, and no other scans."""
        if kind == "HiveTableScanExec":
            return self._identity(node.relation().tableMeta())
        if kind == "BatchScanExec":
            return self._identity(node.table())
        return self._identity(node.relation())

    def _look_at_each(self, commands, depth):
        before, seen = self._seen, set()
        for position, (kind, command) in enumerate(commands):
            if position:
                self._all.append(PlanParts(self._all[0].kind))
            self._found = self._all[-1]
            self._found.position = position
            self._seen = set(before)  # a plan that several commands share belongs to each of them
            self._look_at(command, kind, depth + 1, is_limited=False)
            seen |= self._seen
        self._found, self._seen = self._all[0], seen

    def _collect_leaves(self, plan, depth, is_limited, has_limit):
        leaves = [(kind_of(leaf), leaf) for leaf in items(plan.collectLeaves())]
        above = {}
        if has_limit or any(kind == "BatchScanExec" for kind, _ in leaves):
            above = _above(plan, self._identity, is_limited)
        for kind, leaf in leaves:
            filters, may_end_early = above[self._identity(leaf)] if above else ((), False)
            if kind in _SCANS:
                filters = filters if kind == "BatchScanExec" else ()
                self._found.scans.append(Scan(kind, leaf, filters, may_end_early))
            elif kind == FEED_SCAN and self._has_feeds and CHANGE_FEED in leaf.nodeName():
                self._found.scans.append(Scan(kind, leaf, (), may_end_early))
            elif kind == "LocalTableScanExec":
                self._found.rows.append(leaf)
            elif _is_around(kind):
                self.collect(leaf, depth + 1, may_end_early, kind)


# Nodes that may be between a scan and the filter of the scan's rows.
_TRANSPARENT = ("WholeStageCodegenExec", "InputAdapter", "ColumnarToRowExec")
# Limits may end before they have read all rows of their child. Blocking nodes read all rows of
# their child before they give the first row.
_LIMITS = ("CollectLimitExec", "CollectTailExec", "LocalLimitExec", "GlobalLimitExec")
_BLOCKING = (
    "ShuffleExchangeExec",
    "BroadcastExchangeExec",
    "SortExec",
    "HashAggregateExec",
    "ObjectHashAggregateExec",
    "TakeOrderedAndProjectExec",
)


def _above(plan, identity, is_limited):
    """Find the filters directly above each leaf, and whether a limit may end its reading early.

    V1 scans know all their filters, V2 scans only the filters that they took over from Spark.

    :param plan: the physical plan, a Java object
    :param identity: Java's ``System.identityHashCode``, which distinguishes nodes
    :param is_limited: whether a limit above the plan may end the reading of its leaves early
    :return: a dict with a tuple for each leaf, by the leaf's identity: a list of the filters' SQL,
        and whether a limit may end the leaf's reading early
    """
    found = {}
    waiting = [(plan, [], is_limited)]
    while waiting:
        node, filters, is_limited = waiting.pop()
        kind = kind_of(node)
        children = items(node.children())
        if kind in _LIMITS:
            is_limited = True
        elif kind in _BLOCKING:
            is_limited = False
        if kind == "FilterExec":
            filters = [*filters, node.condition().sql()]
        elif not children:
            found[identity(node)] = (filters, is_limited)
        elif kind not in _TRANSPARENT:
            filters = []
        waiting.extend((child, filters, is_limited) for child in children)
    return found


def _is_v2_write(kind):
    """Whether nodes of a class write by DataSource V2.

    :param kind: the name of the class
    """
    return kind in _V2_NODES or kind.endswith("ExecV1")


def _commands_of(union):
    """List (class name, node) of the children of a union that is a multi-insert; else give [].

    :param union: the ``UnionExec``
    """
    found = []
    for child in items(union.children()):
        kind = kind_of(child)
        if kind not in _COMMANDS and not _is_v2_write(kind):
            return []
        found.append((kind, child))
    return found


def _is_around(kind):
    """Whether nodes of a class are wrappers of another plan, as a query stage is.

    :param kind: the name of the class
    """
    return kind.endswith("QueryStageExec") or kind in (ADAPTIVE, _CACHED, *_REUSED)


def _inner(plan, kind):
    """Give the plan inside a node that is a wrapper (:func:`_is_around`).

    :param plan: the node, a Java object
    :param kind: the name of the node's class
    """
    if kind == ADAPTIVE:
        return plan.executedPlan()
    if kind == _CACHED:
        return plan.relation().cacheBuilder().cachedPlan()
    return plan.child() if kind in _REUSED else plan.plan()


def _stages(plan):
    """List the stages of an adaptive plan that were begun, even if the final plan dropped them.

    If one side of a join turns out to be empty, the final plan has neither side of the join.

    :param plan: the ``AdaptiveSparkPlanExec``
    """
    # The cache is private to Spark, so another version may have it in another class.
    return first_answer(plan, lambda p: items(p.context().stageCache().values().toSeq())) or []


def _collect_udfs(plan, found):
    kind = kind_of(plan)
    if kind.endswith("EvalPythonExec"):
        results = items(plan.resultAttrs())
        for udf, result in zip(items(plan.udfs()), results):
            columns = {attribute.name() for attribute in items(udf.references().toSeq())}
            found.udfs.append(
                {
                    "result": result.name(),
                    "function": udf.name(),
                    "columns": sorted(columns),
                    "sql": udf.sql()[:1000],
                }
            )
    for child in items(plan.children()):
        _collect_udfs(child, found)
