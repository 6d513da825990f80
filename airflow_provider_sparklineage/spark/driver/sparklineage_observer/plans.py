"""A physical plan to its scans, write commands and Python UDFs.

Adaptive plans, query stages, caches, reused exchanges and sub-queries are looked through. What a
command has executed already (``CommandResultExec``) is not: it was a query of its own.
"""

from sparklineage_observer.jvm import class_name, items

_SCANS = ("FileSourceScanExec", "HiveTableScanExec", "BatchScanExec")
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

    scans: a list of :class:`Scan`; rows: leaves with rows in the place of a scan; commands:
    ``(class name, command)`` of V1 writes; v2_writes: ``(class name, node)``; udfs: Python
    UDFs with the columns that they are given.
    """

    def __init__(self):
        self.scans = []
        self.rows = []
        self.commands = []
        self.v2_writes = []
        self.udfs = []


def parts_of(plan, identity):
    """Collect the parts of a physical plan.

    :param identity: ``System.identityHashCode`` of the driver, to distinguish nodes
    """
    found = PlanParts()
    _collect(plan, found, identity, set(), 0)
    for scan in found.scans:
        scan.is_alone = len(found.scans) == 1
    return found


def _collect(plan, found, identity, seen, depth, is_limited=False):
    if depth > _MAX_DEPTH:
        return
    number = identity(plan)
    if number in seen:
        return
    seen.add(number)
    kind = class_name(plan)
    inner = _inner(plan, kind)
    if inner is not None:
        _collect(inner, found, identity, seen, depth + 1, is_limited)
        if kind == "AdaptiveSparkPlanExec":
            for stage in _stages(plan):
                _collect(stage, found, identity, seen, depth + 1)
        return
    if kind in _COMMANDS:
        command = plan.cmd()
        found.commands.append((class_name(command), command))
    elif kind in _V2_WRITES or kind.endswith("ExecV1"):
        found.v2_writes.append((kind, plan))
    for subquery in items(plan.subqueriesAll()):
        _collect(subquery, found, identity, seen, depth + 1)
    text = plan.toString()  # one call, against one per node
    if "EvalPython" in text:
        _collect_udfs(plan, found)
    has_limit = is_limited or "Limit" in text or "CollectTail" in text
    _collect_leaves(plan, found, identity, seen, depth, is_limited, has_limit)


def _collect_leaves(plan, found, identity, seen, depth, is_limited, has_limit):
    leaves = [(class_name(leaf), leaf) for leaf in items(plan.collectLeaves())]
    above = {}
    if has_limit or any(kind == "BatchScanExec" for kind, _ in leaves):
        above = _above(plan, identity, is_limited)
    for kind, leaf in leaves:
        filters, may_end_early = above[identity(leaf)] if above else ((), False)
        if kind in _SCANS:
            filters = filters if kind == "BatchScanExec" else ()
            found.scans.append(Scan(kind, leaf, filters, may_end_early))
        elif kind == "LocalTableScanExec":
            found.rows.append(leaf)
        elif _inner(leaf, kind) is not None:
            _collect(leaf, found, identity, seen, depth + 1, may_end_early)


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
        kind = class_name(node)
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


def _inner(plan, kind):
    """Give the plan that a node stands for; None for a node that stands for itself."""
    if kind == "AdaptiveSparkPlanExec":
        return plan.executedPlan()
    if kind.endswith("QueryStageExec"):
        return plan.plan()
    if kind == "InMemoryTableScanExec":
        return plan.relation().cacheBuilder().cachedPlan()
    if kind in ("ReusedExchangeExec", "ReusedSubqueryExec"):
        return plan.child()
    return None


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
    kind = class_name(plan)
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
