"""The syntax tree of a template: its nodes by kind, and what flows into the names that it makes."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

from jinja2 import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

N = TypeVar("N", bound=nodes.Node)


class Nodes:
    """All nodes of a template's syntax tree, by kind, each kind in the order of the template."""

    def __init__(self, tree: nodes.Template) -> None:
        self._by_kind: defaultdict[type[nodes.Node], list[Any]] = defaultdict(list)
        self._add(tree)

    def _add(self, node: nodes.Node) -> None:
        self._by_kind[type(node)].append(node)
        for child in node.iter_child_nodes():
            self._add(child)

    def of(self, kind: type[N]) -> list[N]:
        """Give all nodes of a kind."""
        return self._by_kind.get(kind, [])


def attribute_of(node: nodes.Getattr | nodes.Getitem) -> str | None:
    """Give the name of the attribute or item that is taken; None if it is computed."""
    if isinstance(node, nodes.Getattr):
        return node.attr
    if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
        return node.arg.value
    return None


def _names(target: nodes.Node) -> Iterator[str]:
    if isinstance(target, (nodes.Name, nodes.NSRef)):
        yield target.name
    yield from (name.name for name in target.find_all(nodes.Name))
    yield from (reference.name for reference in target.find_all(nodes.NSRef))


def bindings(all_nodes: Nodes) -> Iterator[tuple[str, nodes.Node]]:
    """Yield each name that the template makes, with each node that flows into it."""
    for assign in all_nodes.of(nodes.Assign):
        yield from ((name, assign.node) for name in _names(assign.target))
    for block in all_nodes.of(nodes.AssignBlock):
        for name in _names(block.target):
            yield from ((name, node) for node in (*block.body, block.filter) if node)
    for loop in all_nodes.of(nodes.For):
        yield from ((name, loop.iter) for name in ("loop", *_names(loop.target)))
    for scope in all_nodes.of(nodes.With):
        for target, value in zip(scope.targets, scope.values, strict=True):
            yield from ((name, value) for name in _names(target))
    for macro in all_nodes.of(nodes.Macro):
        yield macro.name, nodes.Const(macro.name)
        yield from ((macro.name, node) for node in macro.body)
    yield from _arguments(all_nodes)


def _arguments(all_nodes: Nodes) -> Iterator[tuple[str, nodes.Node]]:
    """Yield each parameter of macros and ``call`` blocks, with each argument that is ever given."""
    takers: dict[str, list[nodes.Macro | nodes.CallBlock]] = defaultdict(list)
    for macro in all_nodes.of(nodes.Macro):
        takers[macro.name].append(macro)
    for block in all_nodes.of(nodes.CallBlock):
        takers["caller"].append(block)
        yield from (("caller", node) for node in block.body)
    for taker in (t for named in takers.values() for t in named):
        names = [argument.name for argument in taker.args]
        yield from ((name, nodes.Const(name)) for name in (*names, "varargs", "kwargs"))
        defaults = taker.defaults
        yield from zip(names[len(names) - len(defaults) :], defaults, strict=True)
    for call in all_nodes.of(nodes.Call):
        called = call.node.name if isinstance(call.node, nodes.Name) else ""
        for taker in takers.get(called, ()):
            yield from _given(call, [argument.name for argument in taker.args])


def _given(call: nodes.Call, names: list[str]) -> Iterator[tuple[str, nodes.Node]]:
    yield from zip(names, call.args, strict=False)
    yield from (("varargs", node) for node in call.args[len(names) :])
    for keyword in call.kwargs:
        yield (keyword.key if keyword.key in names else "kwargs"), keyword.value
    for unpacked in (call.dyn_args, call.dyn_kwargs):
        if unpacked is not None:
            yield from ((name, unpacked) for name in (*names, "varargs", "kwargs"))


def mutations(all_nodes: Nodes) -> Iterator[tuple[str, nodes.Node]]:
    """Yield each ``name.append(argument)`` and the like: the argument flows into the name."""
    for call in all_nodes.of(nodes.Call):
        method = call.node
        if isinstance(method, (nodes.Getattr, nodes.Getitem)) and isinstance(
            method.node, nodes.Name
        ):
            yield from ((method.node.name, node) for node in call.args)
            yield from ((method.node.name, keyword.value) for keyword in call.kwargs)
