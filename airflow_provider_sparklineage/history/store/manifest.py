"""The manifest: which files of a store are the history. Whatever it does not name is not there."""

from __future__ import annotations

from datetime import datetime  # msgspec resolves it

import msgspec
from msgspec import Struct

from airflow_provider_sparklineage.history.tables import VERSION

MANIFEST, FACTS, GENERATIONS, MARKS = "manifest.json", "facts", "generations", "marks"
"""The file in a store, and its folders of facts, tables and marks."""


class Retired(Struct, frozen=True):
    """A folder that is in no generation any more, and since when; readers may still be in it."""

    folder: str
    at: datetime


class Manifest(Struct, frozen=True):
    """A generation of the history.

    :param version: of the tables, :data:`.tables.VERSION`
    :param generation: its number, one more with each build
    :param facts: the files of each part of the facts, by the part's name
    :param tables: the files of each table, relative to the store
    :param rows: how many rows each table has, and ``events`` how many there are of facts
    :param marks: the file that says what of the sources was read; empty if there is none
    :param skipped: how often something was skipped in all builds, by reason
    :param since: what is older was forgotten, and does not count if it comes again
    """

    version: int
    generation: int
    built_at: datetime
    facts: dict[str, list[str]]
    tables: dict[str, list[str]]
    rows: dict[str, int]
    skipped: dict[str, int] = {}
    marks: str = ""
    retired: tuple[Retired, ...] = ()
    since: datetime | None = None

    def folders(self) -> set[str]:
        """List the folders of all of its files."""
        named = (*self.facts.values(), *self.tables.values())
        return {"/".join(name.split("/")[:2]) for files in named for name in files}

    def text(self) -> bytes:
        """Give it as JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1)


def empty(at: datetime) -> Manifest:
    """Give the manifest of a store in which nothing is yet."""
    return Manifest(VERSION, 0, at, {}, {}, {})


def parsed(text: bytes) -> Manifest:
    """Read a manifest; raises :exc:`msgspec.MsgspecError` if it is none."""
    return msgspec.json.decode(text, type=Manifest)
