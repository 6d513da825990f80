"""Reads and writes that the observer saw in the driver, bound to datasets and actions.

==========================  ========================================================================
:mod:`.corrections`         the listener's application, corrected by the observer's records
:mod:`.unreported_actions`  actions that the observer saw and the listener did not report
:mod:`.binding`             records bound to the datasets of an application: ``Observations``
:mod:`.accesses`            the observed accesses to one dataset, and the partitions of each
==========================  ========================================================================
"""
