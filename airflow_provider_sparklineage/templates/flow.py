"""The context variables that an expression uses, and whether it may be evaluated once more.

Tracing renders a template a second time. That must not repeat side effects (``ti.xcom_push``,
``params.days.append``) or requests to other services (``var``, ``conn``, ``xcom_pull``), and must
not rely on values that change (``macros.random``). So this module lists the values and functions
that may be evaluated again. Expressions with any other value or function are not evaluated:
:mod:`airflow_provider_sparklineage.templates.markers` leaves out their results.

A name that the template defines (``set``, ``for``, ``macro`` …) stands for all values that are
assigned to it anywhere in the template. So the result may have variables that the expression does
not use, but it never lacks a variable that the expression uses.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from jinja2 import meta, nodes
from jinja2.defaults import DEFAULT_NAMESPACE
from jinja2.filters import FILTERS
from jinja2.sandbox import modifies_known_mutable, safe_range
from jinja2.tests import TESTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from jinja2 import Environment


# --- the syntax tree of a template: the nodes whose values its names get --------------------------


N = TypeVar("N", bound=nodes.Node)
_NAMES: tuple[type[nodes.Name | nodes.NSRef], ...] = (nodes.Name, nodes.NSRef)
_CALLED: tuple[type[nodes.Macro | nodes.CallBlock], ...] = (nodes.Macro, nodes.CallBlock)


def attribute_of(node: nodes.Getattr | nodes.Getitem) -> str | None:
    """Give the name of the attribute or item that a node reads; None if the name is computed."""
    if isinstance(node, nodes.Getattr):
        return node.attr
    if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
        return node.arg.value
    return None


def of_kind(tree_nodes: Iterable[nodes.Node], kind: type[N] | tuple[type[N], ...]) -> Iterator[N]:
    """Yield the nodes of a kind, in a tenth of the time of a walk through the tree."""
    return (node for node in tree_nodes if isinstance(node, kind))


def _names(target: nodes.Node) -> Iterator[str]:
    if isinstance(target, _NAMES):
        yield target.name
    yield from (name.name for name in target.find_all(_NAMES))


def bindings(tree_nodes: Sequence[nodes.Node]) -> Iterator[tuple[str, nodes.Node]]:
    """Yield pairs of a name that the template defines, and a node whose value the name can get.

    :param tree_nodes: all nodes of the template's syntax tree
    """
    for assign in of_kind(tree_nodes, nodes.Assign):
        yield from ((name, assign.node) for name in _names(assign.target))
    for block in of_kind(tree_nodes, nodes.AssignBlock):
        for name in _names(block.target):
            yield from ((name, node) for node in (*block.body, block.filter) if node)
    for loop in of_kind(tree_nodes, nodes.For):
        yield from ((name, loop.iter) for name in ("loop", *_names(loop.target)))
    for scope in of_kind(tree_nodes, nodes.With):
        for target, value in zip(scope.targets, scope.values, strict=True):
            yield from ((name, value) for name in _names(target))
    parameters: defaultdict[str, list[list[str]]] = defaultdict(list)
    for taker in of_kind(tree_nodes, _CALLED):
        called = taker.name if isinstance(taker, nodes.Macro) else "caller"
        yield from ((called, node) for node in taker.body)
        names = [argument.name for argument in taker.args]
        parameters[called].append(names)
        yield from ((name, nodes.Const(name)) for name in (called, *names, "varargs", "kwargs"))
        yield from zip(names[len(names) - len(taker.defaults) :], taker.defaults, strict=True)
    for call in of_kind(tree_nodes, nodes.Call):
        called = call.node.name if isinstance(call.node, nodes.Name) else ""
        for names in parameters.get(called, ()):
            yield from _arguments(call, names)


def _arguments(call: nodes.Call, names: list[str]) -> Iterator[tuple[str, nodes.Node]]:
    """Yield the arguments of a call to a macro or ``call`` block, with their parameters.

    :param names: the parameters of the macro or block, in order
    :return: pairs of a parameter, and an argument that it can get
    """
    yield from zip(names, call.args, strict=False)
    yield from (("varargs", node) for node in call.args[len(names) :])
    for keyword in call.kwargs:
        yield (keyword.key if keyword.key in names else "kwargs"), keyword.value
    for unpacked in (call.dyn_args, call.dyn_kwargs):
        if unpacked is not None:
            yield from ((name, unpacked) for name in (*names, "varargs", "kwargs"))


def mutations(tree_nodes: Sequence[nodes.Node]) -> Iterator[tuple[str, nodes.Node]]:
    """Yield pairs of name and argument for each call like ``name.append(argument)``.

    After such a call, the value of the name may have the argument in it.

    :param tree_nodes: all nodes of the template's syntax tree
    """
    for call in of_kind(tree_nodes, nodes.Call):
        method = call.node
        if isinstance(method, (nodes.Getattr, nodes.Getitem)) and isinstance(
            method.node, nodes.Name
        ):
            arguments = call.iter_child_nodes(exclude=("node",))
            yield from ((method.node.name, argument) for argument in arguments)


# The times of a run, which are in its context and among the attributes of ``dag_run``.
_TIMES = frozenset(
    {
        "logical_date",
        "data_interval_start",
        "data_interval_end",
        "partition_key",
        "partition_date",
    }
)
_DAG_RUN_TIMES = _TIMES | {"run_after"}
DATE_VARIABLES = _TIMES | {
    *(f"dag_run.{name}" for name in _DAG_RUN_TIMES),
    "ds",
    "ds_nodash",
    "ts",
    "ts_nodash",
    "ts_nodash_with_tz",
    "prev_data_interval_start_success",
    "prev_data_interval_end_success",
    "prev_start_date_success",
    "prev_end_date_success",
}
"""The context variables of Airflow 3 that are execution dates, the time for which a run is."""

# Attributes of Airflow's objects that are plain values or pure functions; others are not evaluated.
_INSIDE: Mapping[str, frozenset[str]] = {
    "dag_run": _DAG_RUN_TIMES
    | {"conf", "dag_id", "run_id", "run_type", "start_date", "clear_number"},
    "ti": frozenset({"dag_id", "task_id", "run_id", "try_number", "map_index"}),
    "task_instance": frozenset({"dag_id", "task_id", "run_id", "try_number", "map_index"}),
    "task": frozenset({"dag_id", "task_id"}),
    "dag": frozenset({"dag_id"}),
    "macros": frozenset({"ds_add", "ds_format", "datetime", "timedelta", "json", "dateutil"}),
    "macros.datetime": frozenset({"combine", "fromisoformat", "fromtimestamp", "strptime"}),
    "macros.json": frozenset({"dumps", "loads"}),
    "macros.dateutil": frozenset({"parser", "relativedelta", "tz"}),
}
_PLAIN = frozenset({"params", "run_id", "task_instance_key_str", "map_index_template"})
_PLAIN_TYPES = frozenset({str, int, float, bool, type(None), date, datetime, timedelta})
_PLAIN_GLOBALS = (
    *(DEFAULT_NAMESPACE[name] for name in ("range", "dict", "cycler", "joiner", "namespace")),
    safe_range,
)
_CLOCKS = frozenset({"now", "today", "utcnow"})
_MUTABLE: tuple[object, ...] = ([], {}, set())
_NOT_KNOWN_TO_JINJA = "intersection_update"  # the one method of Python's that its list lacks
_REPEATABLE_FILTERS = (FILTERS.keys() - {"attr", "random"}) | {
    # Airflow adds these filters to its environments.
    *("ds", "ds_nodash", "ts", "ts_nodash", "ts_nodash_with_tz"),
}
# Filters that apply a filter or test, with the position of its name among their arguments.
_APPLYING = {"map": 0, "reject": 0, "rejectattr": 1, "select": 0, "selectattr": 1}

_ELSEWHERE: tuple[type[nodes.Node], ...] = (
    nodes.Extends,
    nodes.Include,
    nodes.Import,
    nodes.FromImport,
)
_OF_EXTENSIONS = (
    nodes.ContextReference,
    nodes.DerivedContextReference,
    nodes.EnvironmentAttribute,
    nodes.ExtensionAttribute,
    nodes.ImportedName,
    nodes.InternalName,
)


class Flow(NamedTuple):
    """The context variables that an expression uses, and whether it can be evaluated again.

    :param paths: context variables; a variable in :data:`_INSIDE` has its attribute, as in
        ``dag_run.logical_date``
    :param pure: whether everything in the expression but its context variables may be evaluated
        once more
    """

    paths: frozenset[str] = frozenset()
    pure: bool = True

    @property
    def repeatable(self) -> bool:
        """Whether the expression may be evaluated once more."""
        return self.pure and all(map(_is_plain, self.paths))

    @property
    def variables(self) -> tuple[str, ...]:
        """Sorted names of the variables; ``dag_run`` with its attribute, as in ``dag_run.conf``."""
        return tuple(
            sorted({p if p.startswith("dag_run.") else p.partition(".")[0] for p in self.paths})
        )

    @property
    def dates(self) -> tuple[str, ...]:
        """The variables that are execution dates."""
        return tuple(name for name in self.variables if name in DATE_VARIABLES)


_NOTHING = Flow()


def _is_plain(path: str) -> bool:
    parent, _, attribute = path.rpartition(".")
    return attribute in _INSIDE[parent] if parent else path not in _INSIDE


def _joined(flows: Iterable[Flow]) -> Flow:
    every = list(flows)
    paths = frozenset(path for flow in every for path in flow.paths)
    return Flow(paths, all(flow.pure for flow in every))


class TemplateFlow:
    """The flow of context variables through one template.

    :ivar nodes: all nodes of the tree, in the order of the template
    :ivar closed: whether the tree shows all uses of variables: the template uses no other template,
        and does not use a macro as a value
    :ivar macros: names of the macros that the template defines
    :ivar blocks: names whose only values are blocks of template text (``{% set name %}…``)
    """

    def __init__(
        self, tree: nodes.Template, environment: Environment, context: Mapping[str, Any]
    ) -> None:
        self._environment = environment
        self._context = context
        self.nodes = tuple(tree.find_all(nodes.Node))
        self.macros = frozenset(macro.name for macro in of_kind(self.nodes, nodes.Macro))
        self.closed = self._is_closed()
        sources: defaultdict[str, list[nodes.Node]] = defaultdict(list)
        for name, node in bindings(self.nodes):
            sources[name].append(node)
        # Code for the tree cannot be generated if a filter is unknown, so names are not looked for
        # in a template that defines none.
        undeclared = meta.find_undeclared_variables(tree) if sources else set()
        self._shared = sources.keys() & (undeclared | environment.globals.keys())

        def names_of(values: Iterable[nodes.Node]) -> frozenset[str]:
            """Give the names that get no other values than these."""
            ids = set(map(id, values))
            every = (name for name, own in sources.items() if ids.issuperset(map(id, own)))
            return frozenset(every) - self._shared

        # Lists and dicts that the template makes: it may change them when it is rendered again.
        self._fresh = names_of(
            assign.node
            for assign in of_kind(self.nodes, nodes.Assign)
            if isinstance(assign.target, nodes.Name)
            and isinstance(assign.node, (nodes.List, nodes.Dict))
        )
        blocks = (b for b in of_kind(self.nodes, nodes.AssignBlock) if not b.filter)
        self.blocks = names_of(node for block in blocks for node in block.body)
        for name, node in mutations(self.nodes):
            if name in self._fresh:
                sources[name].append(node)
        self._local = dict.fromkeys(sources, _NOTHING)
        changed = True
        while changed:  # the loop ends, because flows only grow, and the names are finitely many
            changed = False
            for name, values in sources.items():
                flow = _joined(map(self.flow_into, values))
                changed = changed or flow != self._local[name]
                self._local[name] = flow

    def flow_into(self, node: nodes.Node) -> Flow:
        """Give the context variables that an expression, or any expression of a statement, uses."""
        if isinstance(node, nodes.Name) and node.ctx != "load":
            return _NOTHING
        if isinstance(node, _NAMES):
            return self._of_name(node.name)
        if isinstance(node, (nodes.Getattr, nodes.Getitem)):
            return self._of_attribute(node)
        flow = _joined(map(self.flow_into, node.iter_child_nodes()))
        if isinstance(node, (nodes.Filter, nodes.Test)) and not self._is_known(node):
            return Flow(flow.paths, pure=False)
        return Flow(flow.paths, pure=False) if isinstance(node, _OF_EXTENSIONS) else flow

    def _is_closed(self) -> bool:
        if next(of_kind(self.nodes, _ELSEWHERE), None) is not None:
            return False
        loads = [name.name for name in of_kind(self.nodes, nodes.Name) if name.ctx == "load"]
        called = [
            call.node.name
            for call in of_kind(self.nodes, nodes.Call)
            if isinstance(call.node, nodes.Name)
        ]
        # If a macro were called by another name, the tree would not show the flow of its arguments.
        # Nor does the tree show the flow of a recursive loop's arguments.
        direct = self.macros | {"caller"}
        by_name = sum(name in direct for name in loads) == sum(name in direct for name in called)
        return by_name and {"self", "super"}.isdisjoint(loads) and "loop" not in called

    def _of_name(self, name: str) -> Flow:
        local = self._local.get(name)
        if local is None:
            return self._of_variable(name)
        return _joined((local, self._of_variable(name))) if name in self._shared else local

    def _of_variable(self, name: str) -> Flow:
        flow = Flow(frozenset((name,)))
        if name in DATE_VARIABLES or name in _PLAIN or name in _INSIDE:
            return flow
        globals_ = self._environment.globals
        if name in self._context:
            value = self._context[name]
        elif name in globals_:
            value = globals_[name]
            if any(value is known for known in _PLAIN_GLOBALS):
                return _NOTHING
        else:
            return flow  # Jinja's undefined
        # type(), because isinstance() would make Airflow fetch its lazy values.
        return flow if type(value) in _PLAIN_TYPES else Flow(flow.paths, pure=False)

    def _of_attribute(self, node: nodes.Getattr | nodes.Getitem) -> Flow:
        base, attribute = node.node, attribute_of(node)
        if isinstance(base, nodes.Name) and base.name == "loop" and "loop" in self._local:
            of_item = attribute in ("previtem", "nextitem", "changed")
            return self.flow_into(base) if of_item else _NOTHING
        if attribute is None:
            return _joined(map(self.flow_into, node.iter_child_nodes()))
        flow = self.flow_into(base)
        paths = frozenset(f"{p}.{attribute}" if p in _INSIDE else p for p in flow.paths)
        fresh = isinstance(base, nodes.Name) and base.name in self._fresh
        changes = attribute == _NOT_KNOWN_TO_JINJA or any(
            modifies_known_mutable(value, attribute) for value in _MUTABLE
        )
        pure = fresh if changes else attribute not in _CLOCKS
        return Flow(paths, flow.pure and pure and not attribute.startswith("__"))

    def _is_known(self, node: nodes.Filter | nodes.Test) -> bool:
        """Whether a filter or test comes from Jinja or Airflow, and uses nothing but its input."""
        if isinstance(node, nodes.Test):
            return self._is_known_test(node.name)
        position = _APPLYING.get(node.name)
        if node.dyn_args is not None:
            return False
        if position is not None and len(node.args) > position:
            is_known = self._is_known_filter if node.name == "map" else self._is_known_test
            applied = node.args[position]
            if not isinstance(applied, nodes.Const) or not is_known(applied.value):
                return False
        return self._is_known_filter(node.name)

    def _is_known_test(self, name: str) -> bool:
        return name in TESTS and self._environment.tests.get(name) is TESTS[name]

    def _is_known_filter(self, name: str) -> bool:
        ours = self._environment.filters.get(name)
        return name in _REPEATABLE_FILTERS and FILTERS.get(name, ours) is ours
