"""What may go wrong around lineage, each tried: the job's outcome stays, and the loss is declared.

===============  =====================================================================
``registry.py``  what a fault is: a sentence, what it breaks, what has to be declared
``areas/``       the faults, one module for each area
``bench.py``     the worker on which a fault happens, with a spark-submit of ours
``driver.py``    the same with a real Spark
``rows.py``      what came of a fault, and what is wrong with that
``page.py``      ``docs/reliability.md``, made of all rows
``__main__.py``  ``make faults``
===============  =====================================================================

A new fault is a function in its area; ``make faults`` writes the page anew.
"""

ALL = "SPARKLINEAGE_ALL_FAULTS"
"""Set in the environment of ``make faults``, which tries the slow ones too."""
