"""Column lineage as data: decoded from the listener's facet, combined, composed and expanded.

An *edge*: one input column influences one output column (``ColumnLineage.fields``) or all
of them (``ColumnLineage.dataset``), each with a list of transformations.

===================  ===========================================================================
:mod:`.edges`        the values, their union, and the forms ``compact`` and ``legacy``
:mod:`.decoding`     every form in which listeners report them, 1.12 to 1.53
:mod:`.plans`        column lineage out of Spark's own plan of a write
:mod:`.reported`     the two for one write: as reported, and corrected by the plan
:mod:`.composition`  A→tmp and tmp→B give A→B, within the memory that there is
===================  ===========================================================================
"""
