"""Airflow's converters of an operator's attributes, found without a search.

At each assignment to an attribute Airflow looks for a method ``_convert_<attribute>``: a hundred
times for each task of a DAG file, mostly in vain, and through all classes of the operator, as
Python remembers no search for a name that is put together anew. That takes a fifth of the time of
making a task, and more with each class.
"""

from __future__ import annotations

import inspect


def note(operator_class: type) -> None:
    """Let the class itself answer which converter an attribute has: None for most.

    :param operator_class: what its constructors assign is among the names that stand in their code
    """
    classes = operator_class.__mro__
    constructors = (
        inspect.unwrap(vars(of)["__init__"]) for of in classes if "__init__" in vars(of)
    )
    assigned = {name for c in constructors if inspect.isfunction(c) for name in c.__code__.co_names}
    for name in (f"_convert_{attribute}" for attribute in assigned):
        # Not what is inherited: that may be the None of a class before the one that has it.
        found = (vars(of).get(name) for of in classes)
        setattr(operator_class, name, next(filter(None, found), None))
