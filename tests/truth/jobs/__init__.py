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
    """
    for module in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    jobs = {kind.name(): kind() for kind in _all(Job) if kind.__module__.startswith(__name__)}
    jobs = {name: job for name, job in jobs.items() if not name.startswith("_")}
    return {name: jobs[name] for name in names} if (names := list(names)) else jobs


def _all(kind: type[Job]) -> Iterable[type[Job]]:
    for job in kind.__subclasses__():
        yield job
        yield from _all(job)
