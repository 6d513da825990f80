"""``airflow sparklineage adoption``: which tasks are adopted, which are not, and why.

:mod:`.parsing` makes the DAGs, :mod:`.survey` asks about their tasks, :mod:`.matching` finds what
of the rules is for no task or for one twice, and :mod:`.report` prints it.
"""
