"""What a command is, in the words that argparse and Airflow's command line share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


class Argument(Frozen, frozen=True):
    """An argument, in the words that argparse and Airflow's ``Arg`` share."""

    flags: tuple[str, ...]
    settings: dict[str, Any]


class Command(Frozen, frozen=True):
    """A command of ``sparklineage``."""

    name: str
    help: str
    run: Callable[[argparse.Namespace], int]
    arguments: tuple[Argument, ...]


class Group(Frozen, frozen=True):
    """Commands of ``sparklineage`` under a name of their own, as ``history build`` is."""

    name: str
    help: str
    commands: tuple[Command, ...]
