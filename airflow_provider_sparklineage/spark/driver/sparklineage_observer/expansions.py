"""Adds to the JSON of a plan the projections of its ``Expand`` nodes, where Spark leaves them out.

Spark writes null for them if the node is that of ``unpivot`` or ``melt`` of a DataFrame.
"""

import json

from sparklineage_observer.jvm import items, texts

_LEFT_OUT = '"projections":null'
_FIELDS = ("query", "source", "target")  # the plans that are fields of a command and no children


def fill(nodes, text, plan, budget):
    """Fill in the projections that the JSON of a plan lacks.

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
            fill(tree, text, getattr(plan, field)(), budget)


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
