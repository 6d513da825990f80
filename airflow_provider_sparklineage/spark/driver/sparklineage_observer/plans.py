"""A physical plan to its scans, write commands and Python UDFs.

The plan's text, which is one call, shows whether there are any: the nodes of other plans are not
walked. Adaptive plans, query stages, caches, reused exchanges and sub-queries are looked through.
What a command has executed already (``CommandResultExec``) is not: it was a query of its own.
"""

import re

from sparklineage_observer.jvm import items, kind_of

# How what is recorded begins in the text of a plan.
_READS = re.compile("FileScan |Scan hive |BatchScan")
_WRITES = re.compile(
    r"ExecV1|AppendData|OverwriteByExpression|OverwritePartitionsDynamic|ReplaceData|WriteDelta"
    r"|DeleteFromTable|AtomicCreateTableAsSelect|AtomicReplaceTableAsSelect"
    # Of these commands none writes data, or is about a table that another command will not name.
    r"|Execute (?!(?:Add|Describe|Explain|List|Reset|Set|Show|AlterView|CreateView|DropTable"
    r"|(?:Alter|Create|Drop)(?:Database|Function))\w*Command\b)"
)
_ROWS = re.compile("LocalTableScan (?!<empty>)")
_LIMIT = re.compile("Limit|CollectTail")
_UDF = "EvalPython"
_CUT = re.compile(r"\d more characters|Truncated plan of")  # as long as a job allows a text to be

_SCANS = ("FileSourceScanExec", "HiveTableScanExec", "BatchScanExec")
_ANYTHING = f"FileScan Execute Subquery Limit {_UDF}"
_COMMANDS = ("DataWritingCommandExec", "ExecutedCommandExec")
_V2_WRITES = (
    "AppendDataExec",
    "OverwriteByExpressionExec",
    "OverwritePartitionsDynamicExec",
    "ReplaceDataExec",
    "WriteDeltaExec",
    "DeleteFromTableExec",
    "AtomicCreateTableAsSelectExec",
    "AtomicReplaceTableAsSelectExec",
)
ADAPTIVE = "AdaptiveSparkPlanExec"
_CACHED = "InMemoryTableScanExec"
_REUSED = ("ReusedExchangeExec", "ReusedSubqueryExec")
_MAX_DEPTH = 60  # of plans in plans; a guard, real ones have a handful


class Scan:
    """A scan, and what stands above it in the plan.

    filters: SQL of the predicates that a V2 scan left to Spark; is_limited: whether the query may
    have ended before all of it was read; is_alone: whether it is the only scan of the plan.
    """

    def __init__(self, kind, node, filters=(), is_limited=False):
        self.kind = kind
        self.node = node
        self.filters = filters
        self.is_limited = is_limited
        self.is_alone = True


class PlanParts:
    """What was found in a plan.

    kind: class name of the plan's root; scans: a list of :class:`Scan`; rows: leaves with rows in
    the place of a scan; commands: ``(class name, command)`` of V1 writes; v2_writes:
    ``(class name, node)``; udfs: Python UDFs with the columns that they are given.
    """

    def __init__(self):
        self.kind = ""
        self.scans = []
        self.rows = []
        self.commands = []
        self.v2_writes = []
        self.udfs = []

    def has_data(self):
        """Whether there is anything that reads or writes."""
        return bool(self.scans or self.rows or self.commands or self.v2_writes)


def parts_of(plan, identity, is_about_tables=bool):
    """Collect the parts of a physical plan.

    :param identity: ``System.identityHashCode`` of the driver, to distinguish nodes
    :param is_about_tables: gives whether rows in the place of scans may be an answer about tables
    """
    found = PlanParts()
    text = plan.toString()
    if text.startswith("CommandResult"):
        return found
    if _CUT.search(text):
        text = _ANYTHING
    if _READS.search(text) or _WRITES.search(text) or (_ROWS.search(text) and is_about_tables()):
        _Walk(found, identity, text).collect(plan)
    for scan in found.scans:
        scan.is_alone = len(found.scans) == 1
    return found


class _Walk:
    """A walk through a plan and those in it; what the text of all has nowhere is not looked for."""

    def __init__(self, found, identity, text):
        self._found = found
        self._identity = identity
        self._seen = set()
        self._has_subqueries = "ubquery" in text
        self._has_limits_or_udfs = bool(_LIMIT.search(text)) or _UDF in text
        # Of a write without scans nobody asks what other leaves it has.
        self._has_leaves = bool(_READS.search(text)) or _UDF in text or not _WRITES.search(text)

    def collect(self, plan, depth=0, is_limited=False, kind=None):
        if depth > _MAX_DEPTH or self._is_seen(plan):
            return
        kind = kind or kind_of(plan)
        self._found.kind = self._found.kind or kind
        if _is_around(kind):
            self.collect(_inner(plan, kind), depth + 1, is_limited)
            if kind == ADAPTIVE and self._has_leaves:
                for stage in _stages(plan):
                    self.collect(stage, depth + 1)
        else:
            self._look_at(plan, kind, depth, is_limited)

    def _is_seen(self, plan):
        if not (self._has_leaves or self._has_subqueries):
            return False  # no plan has more than one in it
        number = self._identity(plan)
        is_seen = number in self._seen
        self._seen.add(number)
        return is_seen

    def _look_at(self, plan, kind, depth, is_limited):
        if kind in _COMMANDS:
            command = plan.cmd()
            self._found.commands.append((kind_of(command), command))
        elif kind in _V2_WRITES or kind.endswith("ExecV1"):
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
            elif kind == "LocalTableScanExec":
                self._found.rows.append(leaf)
            elif _is_around(kind):
                self.collect(leaf, depth + 1, may_end_early, kind)


# What may stand between a scan and the filter of its rows.
_TRANSPARENT = ("WholeStageCodegenExec", "InputAdapter", "ColumnarToRowExec")
# What may end before it has all rows of its child, and what has all of them before it gives one.
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
    """Find what is above each leaf: (filters right above it, whether a limit may end it early).

    V1 scans know their filters, V2 scans only those that they took.
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


def _is_around(kind):
    """Whether a node stands for another plan."""
    return kind.endswith("QueryStageExec") or kind in (ADAPTIVE, _CACHED, *_REUSED)


def _inner(plan, kind):
    """Give the plan that a node stands for."""
    if kind == ADAPTIVE:
        return plan.executedPlan()
    if kind == _CACHED:
        return plan.relation().cacheBuilder().cachedPlan()
    return plan.child() if kind in _REUSED else plan.plan()


def _stages(plan):
    """Give the stages that were run, with those that their results made superfluous.

    Where a join's side turns out to be empty, the final plan has neither of its sides.
    """
    try:
        stages = items(plan.context().stageCache().values().toSeq())
    except Exception:  # private to Spark, so another version may have it in another class
        return []
    return [stage for stage in stages if stage.isMaterialized()]


def _collect_udfs(plan, found):
    kind = kind_of(plan)
    if kind.endswith("EvalPythonExec"):
        results = items(plan.resultAttrs())
        for udf, result in zip(items(plan.udfs()), results):
            columns = []
            for attribute in items(udf.references().toSeq()):
                columns.append(attribute.name())
            found.udfs.append(
                {
                    "result": result.name(),
                    "function": udf.name(),
                    "columns": sorted(set(columns)),
                    "sql": udf.sql()[:1000],
                }
            )
    for child in items(plan.children()):
        _collect_udfs(child, found)
