"""What a run did to which part of a dataset, and whether that was expected.

====================  ==============================================================================
:mod:`.accesses`      what an event has of each dataset that was read or written
:mod:`.conditions`    its facet ``subset``, as a condition
:mod:`.operations`    each partition that was written
:mod:`.profiles`      how many rows a partition has, and what a task measured
:mod:`.run_datasets`  what the run read and wrote, on the run
:mod:`.assertions`    checks with their results: those of :mod:`.partition_checks`, and a task's own
                        tests, :mod:`.quality`
====================  ==============================================================================
"""
