"""Where events are: files, folders of them, archives, bundles, here or at a URL.

====================  ============================================================================
:mod:`.local`         a file, or all files below a folder: an archive, a capture folder, any other
:mod:`.remote`        the same at a URL that Airflow's ``ObjectStoragePath`` takes
:mod:`.bundles`       a capture bundle, whose event is merged anew
:mod:`.stores`        another store: its facts
:mod:`.documents`     the events that a file holds: one, an array of them, or one a line
:mod:`.marks`         how far a file was read, so that the next build goes on there
:mod:`.reading`       all sources to lines of facts, with counts of what was skipped
====================  ============================================================================

A source gives pieces: what is new in one file. To add one, give objects with the two methods of
:class:`Source` and :class:`Piece`. Only what the user named is an error where it cannot be had; a
file below that which cannot be read is counted, and tried again by the next build.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from airflow_provider_sparklineage.model.exceptions import UnusableInputError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping

    from airflow_provider_sparklineage.history.facts.runs import Try


class Skip(StrEnum):
    """Why something of a source gives no event; events are skipped for :class:`.facts.Reason`."""

    TORN_LINE = "torn_line"
    """The last line of a file is not complete: the next build reads it."""
    TORN_FILE = "torn_file"
    """A compressed file ends too early, or is damaged; what was before that is read."""
    TOO_LARGE = "too_large"
    """A line or document is longer than :data:`.documents.MAX_BYTES`."""
    OTHER_FILE = "other_file"
    """A file below a folder has no name of one with events: ``.json``, ``.ndjson``, ``.jsonl``."""
    UNREADABLE = "unreadable"
    """A file cannot be opened or fetched; the next build tries again."""
    UNUSABLE_BUNDLE = "unusable_bundle"
    """A capture bundle cannot be merged."""


class Document(NamedTuple):
    """One document of JSON: an event, if all is well.

    :param of: the try that it is of, where its place says so
    """

    text: bytes
    of: Try | None = None


class Piece(Protocol):
    """What is new in one file.

    :param place: what its mark is kept by: an absolute path, or a URL
    :param source: what the tables say it was read from: as the user named it
    :param mark: how far it was read, once all documents were taken; empty if it is to be read again
    """

    place: str
    source: str
    mark: str

    def documents(self, skipped: Counter[str]) -> Iterator[Document]:
        """Give what is new; add to the counts what is not given."""
        ...


class Source(Protocol):
    """Something with events that a user named."""

    def pieces(self, known: Mapping[str, str], skipped: Counter[str]) -> Iterator[Piece]:
        """Give what is new in each file, in the order of their names.

        :param known: marks by places, of the build before
        :raise UnusableInputError: if the source is not there, or cannot be listed
        """
        ...


def source_of(text: str) -> Source:
    """Give the source that a user names: a path, or a URL.

    :raise UnusableInputError: if there is no such file or folder on this machine
    """
    from airflow_provider_sparklineage.history.sources.local import LocalFiles
    from airflow_provider_sparklineage.history.sources.remote import RemoteFiles
    from airflow_provider_sparklineage.history.sources.stores import store_at

    url = urlsplit(text) if "://" in text else None
    if url is not None and url.scheme not in ("file", "local"):
        return store_at(text) or RemoteFiles(text.rstrip("/"))
    path = Path(text) if url is None else Path(unquote(url.path))
    if not path.exists():
        problem = f"There is no {path}."
        fix = "Give an archive folder, a capture bundle, or files of events."
        raise UnusableInputError(problem, fix)
    return store_at(text) or LocalFiles(path, text)
