"""Patterns: the rule by which the partitions that a task reads follow from those that it writes.

Nobody declares it; it is learned from what happened.

================  ==================================================================================
:mod:`.axes`      partitions as points on axes of times, numbers and texts: which axes those of a
                  dataset have, by all of their values, and the step between points
:mod:`.rules`     rules between two axes, and of all axes together, in both directions
:mod:`.learning`  the relation that most runs follow, and the runs that do not
:mod:`.observed`  pairs of partitions from the tables, and the answer
:mod:`.pattern`   the answer, as it is printed
================  ==================================================================================
"""
