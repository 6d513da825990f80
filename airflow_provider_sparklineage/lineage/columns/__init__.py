"""Column lineage as data: decoded from the listener's facet, combined, composed and expanded.

An *edge* says that one input column influences one output column (``ColumnLineage.fields``) or all
output columns (``ColumnLineage.dataset``). Each edge has a list of transformations.

===================  ===========================================================================
:mod:`.edges`        columns and edges, their union, and the forms ``compact`` and ``legacy``
:mod:`.plans`        the column lineage that Spark's own plan of a write shows
:mod:`.reported`     the column lineage that listeners (1.12 to 1.53) report of a write: decoded,
                     and corrected by the plan
:mod:`.composition`  A→tmp and tmp→B become A→B, within a bound on memory
===================  ===========================================================================
"""
