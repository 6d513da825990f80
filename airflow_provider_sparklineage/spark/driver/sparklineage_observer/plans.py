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


class PlanParts:
    """What was found in a plan.

    scans: ``(class name, node, SQL of the predicates that a V2 scan left to Spark)``; commands:
    ``(class name, command)`` of V1 writes; v2_writes: ``(class name, node)``; udfs: Python UDFs
    with the columns that they are given.
    """

    def __init__(self):
        self.scans = []
        self.commands = []
        self.v2_writes = []
        self.udfs = []


def parts_of(plan, identity):
    """Collect the parts of a physical plan.

    :param identity: ``System.identityHashCode`` of the driver, to distinguish nodes
    """
    found = PlanParts()
    _collect(plan, found, identity, set(), 0)
    return found


def _collect(plan, found, identity, seen, depth):
    if depth > _MAX_DEPTH:
        return
    number = identity(plan)
    if number in seen:
        return
    seen.add(number)
    kind = class_name(plan)
    inner = _inner(plan, kind)
    if inner is not None:
        _collect(inner, found, identity, seen, depth + 1)
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
    if "EvalPython" in plan.toString():  # one call, against one per node
        _collect_udfs(plan, found)
    _collect_leaves(plan, found, identity, seen, depth)


def _collect_leaves(plan, found, identity, seen, depth):
    residuals = None
    for leaf in items(plan.collectLeaves()):
        kind = class_name(leaf)
        if kind in _SCANS:
            if kind == "BatchScanExec" and residuals is None:
                residuals = _residuals(plan, identity)
            left = residuals.get(identity(leaf), []) if kind == "BatchScanExec" else []
            found.scans.append((kind, leaf, left))
        elif _inner(leaf, kind) is not None:
            _collect(leaf, found, identity, seen, depth + 1)


# What may stand between a scan and the filter of its rows.
_TRANSPARENT = ("WholeStageCodegenExec", "InputAdapter", "ColumnarToRowExec")


def _residuals(plan, identity):
    """Find the filters right above leaves; V1 scans know theirs, V2 scans only what they took."""
    residuals = {}
    waiting = [(plan, [])]
    while waiting:
        node, above = waiting.pop()
        kind = class_name(node)
        children = items(node.children())
        if kind == "FilterExec":
            above = [*above, node.condition().sql()]
        elif not children:
            residuals[identity(node)] = above
        elif kind not in _TRANSPARENT:
            above = []
        waiting.extend((child, above) for child in children)
    return residuals


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
