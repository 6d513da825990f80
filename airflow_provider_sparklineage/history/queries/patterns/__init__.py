"""Patterns: the rule by which the partitions that a task reads follow from those that it writes.

Users do not declare the rule; it is learned from the reads and writes of past runs.

================  ==================================================================================
:mod:`.axes`      partitions as points on axes of times, numbers and texts: the axes of a dataset's
                  partitions, by all of their values, and the step between points
:mod:`.rules`     rules between two axes, and relations of all axes together, in both directions
:mod:`.learning`  the relation that most runs follow, and the runs that do not
:mod:`.observed`  pairs of partitions from the tables, and the answer
:mod:`.pattern`   the answer, as it is printed
================  ==================================================================================
"""
