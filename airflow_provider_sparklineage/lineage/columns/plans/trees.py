"""Spark's trees as JSON: an array in which each node is followed by its children.

``TreeNode.toJSON`` gives of each node its class, the number of its children and its fields. A field
that is a child is its position among the children; trees that are no children, such as the
expressions of a plan or the plan of a subquery, are arrays within the field. The arrays are long
and never deep, but for subqueries, so nothing here is recursive.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Node = dict[str, Any]
Tree = list[Node]


def kind(node: Node) -> str:
    """Give the class of a node without its package."""
    name = node.get("class")
    return _without_package(name) if isinstance(name, str) else ""


@lru_cache(maxsize=1024)  # a plan has thousands of nodes of some dozen classes
def _without_package(name: str) -> str:
    return name.rpartition(".")[2].rstrip("$")


def arity(node: Node) -> int:
    """Give the number of a node's children."""
    number = node.get("num-children")
    return number if isinstance(number, int) and number > 0 else 0


def is_tree(value: object) -> bool:
    """Whether a field is a tree of its own."""
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], dict)
        and bool(kind(value[0]))
    )


def trees(value: object) -> Iterator[Tree]:
    """Give the trees of a field: one, or a list of them, in lists of any depth."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if is_tree(found):
            yield found  # type: ignore[misc]
        elif isinstance(found, list):
            waiting += reversed(found)
        elif isinstance(found, dict):
            waiting += reversed(list(found.values()))


def children(tree: Tree) -> list[list[int]]:
    """Give the positions of each node's children.

    :raise ValueError: if the array is not one tree
    """
    below: list[list[int]] = [[] for _ in tree]
    waiting: list[int] = []
    for at in range(len(tree) - 1, -1, -1):
        for _ in range(arity(tree[at])):
            if not waiting:
                break
            below[at].append(waiting.pop())
        waiting.append(at)
    if waiting != [0] or any(len(of) != arity(tree[at]) for at, of in enumerate(below)):
        msg = "the plan is no tree"
        raise ValueError(msg)
    return below


def subtree(tree: Tree, at: int) -> Tree:
    """Give a node with all that is below it."""
    end, open_ = at, 1
    while open_ and end < len(tree):
        open_ += arity(tree[end]) - 1
        end += 1
    return tree[at:end]


def expression_id(node: Node) -> int | None:
    """Give the id of a named expression or attribute."""
    found = node.get("exprId")
    number = found.get("id") if isinstance(found, dict) else None
    return number if isinstance(number, int) else None


def attributes(value: object) -> list[tuple[int, str]]:
    """Give (id, name) of the attributes of a field."""
    found = []
    for tree in trees(value):
        number = expression_id(tree[0])
        if number is not None:
            found.append((number, str(tree[0].get("name", ""))))
    return found


def conjuncts(tree: Tree) -> list[Tree]:
    """Split a condition at its ANDs."""
    found: list[Tree] = []
    at = 0
    while at < len(tree):
        if kind(tree[at]) == "And":
            at += 1
            continue
        found.append(subtree(tree, at))
        at += len(found[-1])
    return found


def contains(tree: Sequence[Node], *kinds: str) -> bool:
    """Whether some node of a tree, without those of its subqueries, is of a class."""
    return any(kind(node) in kinds for node in tree)


def parts(tree: Tree, *fields: str) -> tuple[Tree | None, list[list[Tree]]]:
    """Split an expression that changes rows: its condition, and the lists of what it sets.

    :param fields: those that have the positions of what it sets among its children
    """
    below = [subtree(tree, at) for at in children(tree)[0]]
    found = [tree[0].get(field) for field in fields]
    lists = [positions if isinstance(positions, list) else [] for positions in found]
    listed = {at for positions in lists for at in positions}
    conditions = [child for at, child in enumerate(below) if at not in listed]
    outputs = [[below[at] for at in positions if at < len(below)] for positions in lists]
    return (conditions[0] if conditions else None), outputs
