"""Output columns whose sources Spark's listener loses, and what they are made of.

To the listener the result of a Python function comes out of nowhere, and so do the grouping columns
of ROLLUP and CUBE. In the optimised plan each has an expression id, as all that they are made of;
ids are followed down to the columns of what was read. Of columns that are made of no column at all
the plan has the reason: literals, ``count(*)``, rows that came out of the driver or of an RDD.

A call through py4j costs a fraction of a millisecond, so the expressions of a node are read in one
call, and one by one only where a lost column is made of them.
"""

import re

from sparklineage_observer.jvm import class_name, items, option, texts

_MAX_ROOTS = 20  # of one relation
_MAX_NODES = 2000
_MAX_EXPRESSIONS = 2000  # looked at one by one, some three calls each

_NAMED = re.compile(r"(.*)#(\d+)L?(?:-T\S+)?\Z", re.DOTALL)
_ANY_ID = re.compile(r"#(\d+)")
_FOLDER = re.compile(r"/[^/=]+=[^/]*\Z")

_V1_COMMANDS = ("InsertIntoHadoopFsRelationCommand", "InsertIntoHiveTable")
_V2_WRITES = ("AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic")
_EVALUATIONS = ("BatchEvalPython", "ArrowEvalPython")
# Functions of full rows: each result is made of every column that the function is given.
_OF_ROWS = (
    "MapInPandas",
    "MapInArrow",
    "PythonMapInArrow",
    "FlatMapGroupsInPandas",
    "FlatMapGroupsInArrow",
    "FlatMapCoGroupsInPandas",
    "FlatMapCoGroupsInArrow",
)
# The lists of named expressions by which a node adds columns to those of its children, or chooses.
_LISTS = {
    "Project": "projectList",
    "Aggregate": "aggregateExpressions",
    "Window": "windowExpressions",
}
_BY_POSITION = ("Union", "InMemoryRelation")  # their ids are not those of their children
# Why columns of a leaf have no sources.
_REASONS = {
    "LogicalRDD": "rdd",
    "ExternalRDD": "rdd",
    "LocalRelation": "local",
    "Range": "range",
    "OneRowRelation": "literal",
}
# Plans without one of these lose nothing: a text costs one call.
_HIDING = re.compile(
    "EvalPython|InPandas|InArrow|Expand|LogicalRDD|ExternalRDD|LocalRelation|OneRowRelation|Range"
    r"|InMemoryRelation|(?:\[|, )[^#\[\]]* AS "
)
_SOURCELESS = ("LocalRelation", "OneRowRelation", "Range", "EmptyRelation")
_RELATIONS = (
    "LogicalRelation",
    "HiveTableRelation",
    "DataSourceV2Relation",
    "DataSourceV2ScanRelation",
)
UNKNOWN = None
"""Among sources: that there are others, which could not be followed."""


class _TooMuchError(Exception):
    """Raised when there is more to look at than is worth it; the message names it."""


def lost_columns(plan, budget):
    """Find the columns of a write that the listener loses, and what they are made of.

    :param plan: the optimised logical plan
    :return: None where nothing is lost, or the plan is not one of a write
    """
    if not _HIDING.search(plan.toString()):
        return None
    target = _target(plan)
    if target is None:
        return None
    query, names, target_names = target
    found = {"target": target_names, "relations": [], "columns": [], "without_sources": {}}
    tracing = _Tracing(budget, found["relations"])
    try:
        root = tracing.node(query)
        if len(root.ids) != len(names):
            return None
        for name, number in zip(names, root.ids):
            reasons = tracing.reasons(root, number)
            if reasons:
                found["without_sources"][name] = sorted(reasons)
            elif number in root.untraced:
                found["columns"].append(_column(name, tracing.sources(root, number, untraced=True)))
    except _TooMuchError as error:
        found["cut"] = str(error)
    return found if found["columns"] or found["without_sources"] or "cut" in found else None


def _column(name, sources):
    return {
        "column": name,
        "complete": UNKNOWN not in sources,
        "sources": sorted(list(s) for s in sources if s is not UNKNOWN),
    }


def _target(plan):
    """Give (query, names of the written columns, table) of a write; None for other plans."""
    kind = class_name(plan)
    if kind in _V1_COMMANDS:
        if kind == "InsertIntoHiveTable":
            table = plan.table()
            path = table.location().toString()
        else:
            table = option(plan.catalogTable())
            path = plan.outputPath().toString()
        name = table.identifier().unquotedString() if table is not None else None
        return plan.query(), texts(plan.outputColumnNames()), {"path": path, "table": name}
    if kind in _V2_WRITES:
        relation = plan.table()
        names = [name for name, _ in _attributes(relation.output())]
        return plan.query(), names, _v2_table(relation)
    return None


def _attributes(sequence):
    """Give (name, id) of attributes, in one call."""
    return [(match[1], int(match[2])) for match in map(_NAMED.match, texts(sequence))]


def _ids(sequence):
    return [number for _, number in _attributes(sequence)]


def _v2_table(relation):
    table = relation.table()
    try:
        path = table.table().location()  # Iceberg's
    except Exception:  # others have none, or call it otherwise
        path = ""
    return {"path": str(path or ""), "table": table.name()}


class _Node:
    """A node of a plan, asked once for each thing."""

    def __init__(self, plan, kind, children):
        self.plan = plan
        self.kind = kind
        self.children = children
        self.untraced = frozenset()
        """Ids of its output that are made of what the listener loses."""
        self.known = {}
        self._output = self._columns = self._expressions = None

    @property
    def output(self):
        """Give its output: (name, id), in order; one column can be there twice."""
        if self._output is None:
            self._output = _attributes(self.plan.output())
        return self._output

    @property
    def ids(self):
        """Give the ids of its output, in order."""
        return [number for _, number in self.output]

    @property
    def columns(self):
        """Give its output: id -> name."""
        if self._columns is None:
            self._columns = {number: name for name, number in self.output}
        return self._columns

    def named(self):
        """Give the Scala Seq of the expressions that make its columns; None without."""
        return getattr(self.plan, _LISTS[self.kind])() if self.kind in _LISTS else None

    @property
    def expressions(self):
        """Give the expressions by which it makes or chooses columns: id -> (position, text)."""
        if self._expressions is None:
            self._expressions = {}
            sequence = self.named()
            for position, text in enumerate(texts(sequence) if sequence is not None else ()):
                match = _NAMED.match(text)
                if match:
                    self._expressions[int(match.group(2))] = (position, match.group(1))
        return self._expressions


class _Tracing:
    def __init__(self, budget, relations):
        self._budget = budget
        self._relations = relations
        self._nodes = 0
        self._looked_at = 0

    def node(self, plan):
        """Wrap a plan and all that is below it."""
        self._nodes += 1
        self._budget.check()
        if self._nodes > _MAX_NODES:
            message = f"a plan of more than {_MAX_NODES} nodes"
            raise _TooMuchError(message)
        kind = class_name(plan)
        below = [_cached(plan)] if kind == "InMemoryRelation" else items(plan.children())
        node = _Node(plan, kind, [self.node(child) for child in below])
        node.untraced = _untraced(node)
        return node

    def sources(self, node, number, untraced=False):
        """Give the sources of a column: {(number of the relation, column)}, and UNKNOWN.

        :param untraced: only those that the listener loses
        """
        if (number, untraced) not in node.known:
            node.known[number, untraced] = frozenset(self._sources(node, number, untraced))
        return node.known[number, untraced]

    def _sources(self, node, number, untraced):
        if untraced and number not in node.untraced:
            return ()
        if node.kind in _RELATIONS:
            return self._relation(node, number)
        if node.kind in _SOURCELESS:
            return ()
        if node.kind in _BY_POSITION:
            position = node.ids.index(number)
            return self._all(((c, [c.ids[position]]) for c in node.children), untraced)
        if number in node.expressions:
            position, _ = node.expressions[number]
            return self._referred(node, number, node.named().apply(position), untraced)
        for child in node.children:
            if number in child.columns:
                return self.sources(child, number, untraced)
        return self._made_here(node, number, untraced)

    def _made_here(self, node, number, untraced):
        """Give the sources of a column that no child has."""
        if node.kind in _EVALUATIONS:
            position = _ids(node.plan.resultAttrs()).index(number)
            return self._referred(node, number, node.plan.udfs().apply(position), untraced=False)
        if node.kind == "Generate":
            return self._referred(node, number, node.plan.generator(), untraced)
        if node.kind in _OF_ROWS:
            return self._all(((child, child.ids) for child in node.children), untraced=False)
        if node.kind == "Expand":
            position = node.ids.index(number)
            found = set()
            for projection in items(node.plan.projections()):
                found |= self._referred(node, number, projection.apply(position), untraced=False)
            return found
        return (UNKNOWN,)

    def _referred(self, node, number, expression, untraced):
        """Give the sources of the columns that an expression refers to."""
        self._looked_at += 1
        self._budget.check()
        if self._looked_at > _MAX_EXPRESSIONS:
            message = f"more than {_MAX_EXPRESSIONS} expressions make the columns that are lost"
            raise _TooMuchError(message)
        found = set()
        for referred in _ids(expression.references()):
            at = [child for child in node.children if referred in child.columns]
            if at:
                found |= self.sources(at[0], referred, untraced)
            elif referred != number and referred in node.expressions:
                found |= self.sources(node, referred, untraced)  # a window's, of one next to it
            else:
                found.add(UNKNOWN)
        return found

    def _all(self, pairs, untraced):
        found = set()
        for child, ids in pairs:
            for number in ids:
                found |= self.sources(child, number, untraced)
        return found

    def _relation(self, node, number):
        if "relations" not in node.known:
            node.known["relations"] = [self._numbered(t) for t in _tables(node)]
        return [(at, node.columns[number]) for at in node.known["relations"]] or (UNKNOWN,)

    def _numbered(self, table):
        if table not in self._relations:
            self._relations.append(table)
        return self._relations.index(table)

    def reasons(self, node, number):
        """Give the reason why a column has no sources; nothing if it has, or may have.

        Ids are read off texts here, in which a literal can look like one: then there is no reason.
        """
        if ("why", number) not in node.known:
            node.known["why", number] = frozenset(self._reasons(node, number))
        return node.known["why", number]

    def _reasons(self, node, number):
        if not node.children:
            return (_REASONS[node.kind],) if node.kind in _REASONS else ()
        if node.kind in _BY_POSITION:
            position = node.ids.index(number)
            return _united(self.reasons(c, c.ids[position]) for c in node.children)
        if node.kind in _EVALUATIONS and not any(number in c.columns for c in node.children):
            position = _ids(node.plan.resultAttrs()).index(number)
            given = _ids(node.plan.udfs().apply(position).references())
            return _united(
                self.reasons(c, n) for n in given for c in node.children if n in c.columns
            )
        if number not in node.expressions:
            below = [child for child in node.children if number in child.columns]
            return self.reasons(below[0], number) if below else ()
        text = node.expressions[number][1]
        referred = {int(n) for n in _ANY_ID.findall(text)}
        if not referred and " AS " in text:
            made = text.rpartition(" AS ")[0]
            return ("count" if made == "count(1)" else "function" if "(" in made else "literal",)
        of = [(c, n) for n in sorted(referred | {number}) for c in node.children if n in c.columns]
        return _united(self.reasons(child, n) for child, n in of)


def _united(reasons):
    """Unite the reasons of all that a column is made of; nothing if one of it has none."""
    found = list(reasons)
    return frozenset().union(*found) if all(found) else frozenset()


def _untraced(node):
    """Name the ids of a node's output that are made of what the listener loses."""
    below = frozenset().union(*(child.untraced for child in node.children))
    if node.kind in _EVALUATIONS:
        return below | frozenset(_ids(node.plan.resultAttrs()))
    if node.kind in _OF_ROWS:
        return frozenset(node.ids)
    if node.kind == "Expand":
        return frozenset(node.ids) - frozenset(n for c in node.children for n in c.columns) | below
    if not below:
        return below
    if node.kind in _LISTS:
        made = (n for n, (_, t) in node.expressions.items() if below & set(_mentioned(n, t)))
        return below | frozenset(made)
    if node.kind in _BY_POSITION:
        found = {p for c in node.children for p, number in enumerate(c.ids) if number in c.untraced}
        return frozenset(number for p, number in enumerate(node.ids) if p in found)
    if node.kind == "Generate":
        return below | frozenset(node.ids)
    return below


def _mentioned(number, text):
    return (number, *map(int, _ANY_ID.findall(text)))


def _cached(plan):
    """Give the plan of a cached frame, optimised: as it was analysed it has no steps of Python."""
    builder = plan.cacheBuilder()
    planned = builder.cachedPlan()
    session = planned.session()
    if not session.version().startswith("3."):
        return session.sessionState().optimizer().execute(builder.logicalPlan())
    # Spark 3.5 keeps the physical plan only, whose steps know what they were planned of.
    while planned.logicalLink().isEmpty():
        is_adaptive = planned.getClass().getSimpleName() == "AdaptiveSparkPlanExec"
        planned = planned.inputPlan() if is_adaptive else planned.children().head()
    return planned.logicalLink().get()


def _tables(node):
    """Describe what a relation reads: [{"path", "table"}]; nothing where that is not known."""
    plan, kind = node.plan, node.kind
    if kind == "DataSourceV2ScanRelation":
        plan = plan.relation()
    if kind.startswith("DataSourceV2"):
        return [_v2_table(plan)]
    if kind == "HiveTableRelation":
        meta = plan.tableMeta()
        name = meta.identifier().unquotedString()
        return [{"path": meta.location().toString(), "table": name}]
    table = option(plan.catalogTable())
    name = table.identifier().unquotedString() if table is not None else None
    if class_name(plan.relation()) != "HadoopFsRelation":
        return []
    roots = {_above_partitions(root) for root in texts(plan.relation().location().rootPaths())}
    if len(roots) > _MAX_ROOTS:
        return []
    return [{"path": root, "table": name} for root in sorted(roots)]


def _above_partitions(root):
    root = root.rstrip("/") or root
    while _FOLDER.search(root):
        root = _FOLDER.sub("", root)
    return root
