"""The kinds of values that options have, each with a reader of texts and JSON values.

A reader's argument is the value in a source: a text of Airflow's configuration, a value of the JSON
in a connection's extra, or an argument of the operator. The reader reads empty text as the default
of the option. For a value that it cannot read it raises ``ValueError``; if this error has a
message, the message says more than :attr:`Kind.must_be`.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from airflow_provider_sparklineage.model import rules
from airflow_provider_sparklineage.model.credentials import scrub_name
from airflow_provider_sparklineage.model.representation import ColumnLineageForm, Intermediates
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.spark.capture.bundle import CaptureLocation
from airflow_provider_sparklineage.spark.submit import distribution, submitted_files
from airflow_provider_sparklineage.spark.submit.injection import ExistingTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.model.rules import PartitionRules


_REMOTE = re.compile(r"[a-z][a-z0-9+.-]*://.")


class KeepCaptures(StrEnum):
    """The capture bundles that are not deleted when their try has ended."""

    DEGRADED = "degraded"
    """The bundles of failed tries, and of tries whose lineage has a gap that can be fixed."""
    ALL = "all"
    NONE = "none"


class HistoryMerger(StrEnum):
    """Who merges events that tasks have delivered into the tables of the history."""

    PAGE = "page"
    """Airflow's API server, while somebody looks at the page."""
    TASKS = "tasks"
    """Also each task at its end."""
    COMMAND = "command"
    """Only ``sparklineage history build``."""


class OtherProducers(StrEnum):
    """Which users may see runs of the history that belong to no DAG of this Airflow."""

    DAG_READERS = "dag_readers"
    """Those who may read the XComs of all DAGs."""
    EVERYBODY = "everybody"
    """All users of this Airflow."""


class BackendName(StrEnum):
    """The supported lineage backends.

    Each has a class in :mod:`airflow_provider_sparklineage.event.backends`.
    """

    MARQUEZ = "marquez"
    DATAHUB = "datahub"
    GENERIC = "generic"


class Kind(Frozen, frozen=True):
    """A kind of values.

    :param read: the reader: a function that converts the value in a source to the option's value,
        and raises ValueError if it cannot
    :param must_be: the end of the sentence "It must be …."
    :param type: the type in JSON Schema: boolean, integer, number, string
    :param choices: all possible values; empty if they cannot be listed
    """

    read: Callable[[object], object]
    must_be: str
    type: str = "string"
    choices: tuple[str, ...] = ()

    @property
    def airflow_type(self) -> str:
        """The name of the type in Airflow's configuration."""
        return "float" if self.type == "number" else self.type


def default_capture_location() -> Path:
    """Give the default capture location: the user's own folder in the temporary folder."""
    return Path(tempfile.gettempdir()) / f"sparklineage-{os.getuid()}"


def _text(value: object) -> str:
    if not isinstance(value, str | Path | int | float):
        raise ValueError  # noqa: TRY004  # readers raise this error for every unreadable value
    return str(value).strip()


def _boolean(value: object) -> bool:
    text = _text(value).lower()
    if text in ("true", "t", "1", "yes", "on"):
        return True
    if text in ("false", "f", "0", "no", "off"):
        return False
    raise ValueError


def _number(value: object, below: float = 1e6) -> float:
    number = float(_text(value))
    if isinstance(value, bool) or not 0 <= number < below:
        raise ValueError
    return number


def _integer(value: object) -> int:
    number = _number(value, below=1e12)
    if number != int(number):
        raise ValueError
    return int(number)


def _local(value: object) -> str:
    """Give the text of a local path, and refuse a URL.

    If a URL were read as a path, it would lose a slash, and its password would not be recognised.

    :raise ValueError: if the text is a URL
    """
    text = _text(value)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", text):
        raise ValueError
    return text


def _path(value: object) -> Path | None:
    text = _local(value)
    try:
        return Path(text).expanduser() if text else None
    except RuntimeError as error:  # ~name, and this machine has no such user
        raise ValueError from error


def _jar(value: object) -> Path | str | None:
    text = _text(value)
    scheme = submitted_files.scheme(text) if _REMOTE.match(text) else ""
    if scheme in ("", "file"):
        return _path(unquote(urlsplit(text).path) if scheme else text)
    # The URL becomes an argument of a process, which every user of the machine can read.
    if not submitted_files.is_plain_url(text) or scrub_name(text) != text:
        raise ValueError
    return text


def _location(value: object) -> CaptureLocation:
    text = _text(value)
    if _REMOTE.match(text):
        if urlsplit(text).password is not None:  # the URL is written to bundles and messages
            raise ValueError
        return CaptureLocation(default_capture_location(), text.rstrip("/"))
    path = _path(text)
    if path is not None and not path.is_absolute():
        raise ValueError
    return CaptureLocation(path or default_capture_location())


def _hadoop_url(value: object) -> str:
    text = _url_of_store(value)
    # This URL becomes a part of a process's argument, too, so a credential in it would be visible.
    if scrub_name(text) != text:
        raise ValueError
    return text


def _url(value: object) -> str | None:
    text = _text(value)
    if text and not re.match("https?://[^/]", text):
        raise ValueError
    urlsplit(text)  # raises an error for e.g. http://[
    # User and password are removed: pages and XComs would show them in links, and a browser asks
    # for both.
    return scrub_name(text).rstrip("/") or None


def _store(value: object) -> str:
    text = _text(value)
    # "none" is a value that switches the store off. Empty text is not a value: the option then has
    # its default, which depends on Airflow's executor.
    return "" if text.lower() == "none" else _url_of_store(text)


def _url_of_store(value: object) -> str:
    text = _text(value)
    if text and not _REMOTE.match(text):
        raise ValueError
    urlsplit(text)  # raises an error for e.g. http://[
    return text.rstrip("/")


def _paths(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list | tuple) else _text(value).split(",")
    return tuple(text for item in items if (text := _text(item)))


def _spark_version(value: object) -> tuple[str, str] | None:
    text = _text(value)
    return distribution.declared(text) if text else None


def _partitioning(value: object) -> PartitionRules:
    return rules.load_partition_rules(
        json.dumps(value) if isinstance(value, list) else _local(value)
    )


def _choice(choices: type[StrEnum]) -> Kind:
    must_be = f"one of {', '.join(choices)}"
    return Kind(lambda value: choices(_text(value).lower()), must_be, choices=tuple(choices))


def _duration(unit: str) -> Kind:
    must_be = f"a number of {unit} that is not negative"
    return Kind(lambda value: timedelta(**{unit: _number(value)}), must_be, "number")


BOOLEAN = Kind(_boolean, "True or False", "boolean")
COUNT = Kind(_integer, "a whole number that is not negative", "integer")
DAYS = _duration("days")
SECONDS = _duration("seconds")
JAR = Kind(
    _jar, "a path, or a URL without a user such as local:///opt/spark/lineage/openlineage-spark.jar"
)
URL = Kind(_url, "a URL that begins with http:// or https://")
LOCATION = Kind(
    _location,
    "an absolute path on the worker, or a URL without a password, such as s3://bucket/lineage",
)
HADOOP_URL = Kind(_hadoop_url, "a URL without a password, such as s3a://bucket/lineage")
STORE = Kind(_store, "none, or a URL such as s3://bucket/lineage or file:///mnt/lineage")
URL_OF_STORE = Kind(_url_of_store, "a URL such as s3://bucket/history or file:///mnt/history")
TEXT = Kind(_text, "a text")
PATHS = Kind(_paths, "paths with commas between, or a list of them")
SPARK_VERSION = Kind(_spark_version, "a version of Spark, such as 4.0.1 or 3.5.6-scala2.13")
PARTITIONING = Kind(_partitioning, "a YAML file of rules, or the rules")
INTERMEDIATES = Kind(
    lambda value: Intermediates.parse(_text(value)),
    "keep, drop, or drop: followed by globs of dataset names with commas between them",
)
KEEP_CAPTURES = _choice(KeepCaptures)
HISTORY_MERGER = _choice(HistoryMerger)
OTHER_PRODUCERS = _choice(OtherProducers)
COLUMN_LINEAGE = _choice(ColumnLineageForm)
BACKEND = _choice(BackendName)
EXISTING_TRANSPORT = _choice(ExistingTransport)
