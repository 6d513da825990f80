"""Column lineage out of Spark's own plan of a write, with the listener's types and subtypes.

The listener builds its column lineage from the optimised plan, in which some columns are lost, and
reports some writes without any. Here it is built from the analysed plan, which the observer records
as Spark writes it (``TreeNode.toJSON``): the columns of the relations that are read have expression
ids, operators and expressions refer to these ids, and written columns are followed down by them.

===================  ===========================================================================
:mod:`.expressions`  JSON as trees; the value of an expression, from its operands, and its text
:mod:`.operators`    the relation that an operator makes of the relations below it, in one walk
:mod:`.commands`     the columns that a command writes: queries, MERGE, UPDATE and DELETE
===================  ===========================================================================

A source that cannot be followed is not guessed: its column is incomplete, and is reported as such.
The only guess is for functions of full rows (``mapInPandas``), which are taken to make every column
from every column.
"""
