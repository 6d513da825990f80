"""Column lineage as data: decoded from the listener's facet, combined, composed and expanded.

An *edge*: one input column influences one output column (``ColumnLineage.fields``) or all
of them (``ColumnLineage.dataset``), each with a list of transformations.

===================  ===========================================================================
:mod:`.edges`        the values, their union, and the forms ``compact`` and ``legacy``
:mod:`.plans`        column lineage out of Spark's own plan of a write
:mod:`.reported`     the column lineage that listeners report of a write, 1.12 to 1.53: decoded, and
                     corrected by the plan
:mod:`.composition`  A→tmp and tmp→B give A→B, within a bound on memory
===================  ===========================================================================
"""
