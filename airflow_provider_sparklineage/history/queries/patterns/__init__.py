"""Patterns: the rule by which the partitions that a task reads follow from those that it writes.

Nobody declares it; it is learned from what happened.

==================  ================================================================================
:mod:`.axes`        partitions as points on axes of times, numbers and texts
:mod:`.deciding`    which axes the partitions of a dataset have, by all of their values
:mod:`.units`       years, months, weeks, days, hours as numbers
:mod:`.rules`       rules between two axes, in both directions
:mod:`.candidates`  rules that may hold, read off the runs
:mod:`.relation`    rules of all axes together: what follows from a partition, on either side
:mod:`.learning`    the relation that most runs follow, and the runs that do not
:mod:`.judging`     which runs follow a relation, and what is missing from the others
:mod:`.steps`       the step between partitions: each day, Mondays, the first of the month
:mod:`.observed`    pairs of partitions from the tables, and the answer
:mod:`.pattern`     the answer, as it is printed; :mod:`.summary` makes it of a relation
==================  ================================================================================
"""

from __future__ import annotations
