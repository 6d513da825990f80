"""Column lineage out of Spark's own plan of a write, with the listener's types and subtypes.

The listener builds its column lineage of the optimised plan, in which some columns are lost, and
reports some writes without any. Here it is built of the analysed plan, which the observer records
as Spark writes it (``TreeNode.toJSON``): the columns of what is read have expression ids, operators
and expressions refer to them, and the written columns are followed down by these ids.

===================  ===========================================================================
:mod:`.expressions`  JSON as trees; an expression's value, of those of its operands, and its text
:mod:`.operators`    the relation that an operator makes of those below it, in one walk
:mod:`.commands`     the columns that a command writes: queries, MERGE, UPDATE and DELETE
===================  ===========================================================================

What cannot be followed is not guessed: the column is incomplete, and is reported as such. Only of
functions of full rows (``mapInPandas``) every column is given from every column, as a guess.
"""
