"""Find column lineage in Spark's own plan of a write, with the listener's types and subtypes.

The listener builds its column lineage from the optimised plan, in which some columns are lost, and
reports some writes without column lineage. Here column lineage is built from the analysed plan,
which the observer records as Spark writes it (``TreeNode.toJSON``): the columns of the relations
that are read have expression ids, and operators and expressions refer to these ids. Written columns
are followed down by the ids.

===================  ===========================================================================
:mod:`.expressions`  JSON read as trees; the value of an expression, with its sources and text
:mod:`.operators`    the relation that an operator makes of the relations below it, in one walk
:mod:`.commands`     the columns that a command writes: queries, MERGE, UPDATE and DELETE
===================  ===========================================================================

A source that cannot be followed is not guessed: the written column is incomplete, and is reported
as such. The only guess is for functions of whole rows (``mapInPandas``): every column of their
output is taken to be made from every column of their input.
"""
