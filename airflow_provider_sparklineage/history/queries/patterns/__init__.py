"""Patterns: rules that tell which partitions a task reads when it writes given partitions.

Users do not declare the rules; they are learned from the reads and writes of past runs.

================= ==================================================================================
:mod:`.axes`      partitions as points on axes of times, numbers and texts: the axes of a dataset's
                  partitions, found from all of their values, and the step between points
:mod:`.rules`     rules between two axes, and relations of all axes together, in both directions
:mod:`.learning`  the relation that most runs follow, and the runs that do not follow it
:mod:`.observed`  the pairs of partitions in the tables, and the patterns learned from them
:mod:`.timetable` Airflow's timetable from the patterns, with the mapper of each input
================= ==================================================================================
"""
