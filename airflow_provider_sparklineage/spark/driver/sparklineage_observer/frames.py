"""Keeps the plans of frames whose rows Spark has as an RDD: checkpoints and batches of streams.

``checkpoint``, ``localCheckpoint`` and ``foreachBatch`` give the job a new frame. In its plan, a
leaf (``LogicalRDD``) stands in place of the plan that made the rows. The leaf has the ids of the
columns of that plan. If a query reads the frame twice, Spark gives new ids to the second leaf, but
this still has the same RDD.

In the recorded JSON of a later plan, such a leaf becomes a reference to a common table, and the
plan that made the rows becomes the definition of this common table.
"""

import json

from sparklineage_observer.relations import ids_of

CHECKPOINTS = ("checkpoint", "localCheckpoint")
"""Spark's names of the actions that give such a frame."""
_LEAF = "LogicalRDD "
_PACKAGE = "org.apache.spark.sql.catalyst.plans.logical"


class Frame:
    """The plan that made the rows of a frame.

    name: a text that no other frame has; plan: the JSON of the plan, in which leaves of other
    frames are references, "" if it exceeds a limit, which ``cut`` then names; relations: the
    relations that the plan reads, from :func:`.relations.relations_of`; frames: the frames to which
    the plan refers.
    """

    def __init__(self, name, plan="", relations=(), frames=(), cut=""):
        self.name = name
        self.plan = plan
        self.relations = relations
        self.frames = frames
        self.cut = cut


class Frames:
    """The frames of one driver, by the ids of their columns and by their RDDs."""

    def __init__(self):
        self._by_ids = {}
        self._by_rdd = {}
        self.plan_of_batch = lambda _: None
        """A function that gives the plan of a stream's batch by the ids of its columns, or None."""

    def add(self, ids, described):
        """Keep the plan of a frame, unless it is kept already.

        :param ids: the ids of the frame's columns, a tuple of ints
        :param described: a function that gives the further parts of the :class:`Frame`, as a dict
        """
        if ids and ids not in self._by_ids:
            parts = described()
            self._by_ids[ids] = Frame(f"frame-{len(self._by_ids)}", **parts)

    def of_leaves(self, leaves, described):
        """Find the frames that the leaves of a plan read.

        :param leaves: the leaves, as :func:`.relations.leaves_of` gives them
        :param described: a function that gives the parts of a :class:`Frame`, as a dict, for the
            plan of a stream's batch
        :return: a dict: the ids of the columns of a leaf -> the frame
        """
        found, others = {}, {}
        for sequence, position, text in leaves:
            if not text.startswith(_LEAF):
                continue
            leaf = sequence.apply(position)
            ids = ids_of(leaf, text)
            plan = None if ids in self._by_ids else self.plan_of_batch(ids)
            if plan is not None:
                self.add(ids, lambda plan=plan: described(plan))
            if ids in self._by_ids:
                found[ids] = self._by_rdd[leaf.rdd().id()] = self._by_ids[ids]
            else:
                others[ids] = leaf
        for ids, leaf in others.items() if self._by_rdd else ():
            frame = self._by_rdd.get(leaf.rdd().id())
            if frame is not None:
                found[ids] = frame
        return found


def refer(nodes, found):
    """Replace the leaves of frames in a plan by references to common tables.

    :param nodes: the parsed JSON of the plan, which is changed
    :param found: a dict: the ids of the columns of a leaf -> its :class:`Frame`
    """
    waiting = [nodes] if found else []
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            is_leaf = str(value.get("class", "")).endswith(".LogicalRDD")
            frame = found.get(_output_ids(value)) if is_leaf else None
            if frame is not None:
                value.update({"class": f"{_PACKAGE}.CTERelationRef", "cteId": frame.name})
            waiting.extend(value.values())


def _output_ids(node):
    """Give the ids of the output columns of a leaf in the JSON of a plan, as a tuple."""
    try:
        return tuple(column[0]["exprId"]["id"] for column in node["output"])
    except (LookupError, TypeError):  # another version of Spark may write another form
        return ()


def with_needed(frames):
    """List frames, each once, and before each the frames to which its plan refers."""
    needed = {}
    waiting = [(frame, False) for frame in reversed(frames)]
    while waiting:
        frame, is_ready = waiting.pop()
        if is_ready:
            needed.setdefault(frame.name, frame)
        elif frame.name not in needed:
            waiting.append((frame, True))
            waiting.extend((below, False) for below in frame.frames)
    return list(needed.values())


def defined(frames, nodes):
    """Put the plans of frames before a plan, as definitions of common tables.

    A frame whose plan is not known gets no definition; then nobody can follow columns through the
    references to it.

    :param frames: the frames, in the order of :func:`with_needed`
    :param nodes: the parsed JSON of the plan
    """
    frames = [frame for frame in frames if frame.plan]
    if not frames:
        return nodes
    found = [{"class": f"{_PACKAGE}.WithCTE", "num-children": len(frames) + 1}]
    for frame in frames:
        found.append({"class": f"{_PACKAGE}.CTERelationDef", "num-children": 1, "id": frame.name})
        found += json.loads(frame.plan)
    return found + nodes
