"""Reads and writes that the observer saw in the driver, bound to datasets and actions.

==========================  ========================================================================
:mod:`.places`              paths and tables of records → datasets and partitions
:mod:`.binding`             records → queries, with their datasets, partitions and actions;
                            queries → ``Observations``
:mod:`.corrections`         queries and application → both corrected, by a list of functions
:mod:`.unreported_actions`  one of these: actions that the listener did not report
:mod:`.accesses`            ``Observations``, and the partitions of the accesses to each dataset
==========================  ========================================================================
"""
