"""Jobs with their known truth: each is a subclass of :class:`tests.truth.job.Job` in a module here.

``python -m tests.truth parquet --jobs NAME`` runs one of them, ``make truth`` all of them.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

from tests.truth.job import Job

if TYPE_CHECKING:
    from collections.abc import Iterable


def load(names: Iterable[str] = ()) -> dict[str, Job]:
    """Give the named jobs by their names; all of them if none is named.

    :raise KeyError: with a name that no job has
    :raise ValueError: if two jobs have the same name, of which one would never run
    """
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    jobs: dict[str, Job] = {}
    for kind in _all(Job):
        name = kind.name()
        if not kind.__module__.startswith(__name__) or name.startswith("_"):
            continue
        if name in jobs:
            msg = f"{kind.__module__} and {type(jobs[name]).__module__} have a job {name}"
            raise ValueError(msg)
        jobs[name] = kind()
    return {name: jobs[name] for name in names} if (names := list(names)) else jobs


def _all(kind: type[Job]) -> Iterable[type[Job]]:
    for job in kind.__subclasses__():
        yield job
        yield from _all(job)
