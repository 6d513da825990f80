"""The settings of one try: operator argument, else ``[sparklineage]`` option, else default."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage import rules
from airflow_provider_sparklineage.exceptions import SettingsError
from airflow_provider_sparklineage.intermediates import KEEP, Intermediates
from airflow_provider_sparklineage.representation import (
    DEFAULT_MAX_EVENT_BYTES,
    Limits,
    Representation,
)
from airflow_provider_sparklineage.rules import NO_RULES, PartitionRules

if TYPE_CHECKING:
    from collections.abc import Callable

SECTION = "sparklineage"


class KeepCaptures(StrEnum):
    """Which capture bundles outlive their try."""

    DEGRADED = "degraded"
    """Those of failed tries, and of tries whose lineage lacks something that can be mended."""
    ALL = "all"
    NONE = "none"


class ColumnLineageForm(StrEnum):
    """How column lineage says what influences all columns of an output: filters, joins."""

    COMPACT = "compact"
    """Once."""
    LEGACY = "legacy"
    """With every column: for backends that do not know the compact form."""


class Option(NamedTuple):
    """An option of the ``[sparklineage]`` section, as Airflow documents it."""

    name: str
    type: str
    default: str
    example: str
    description: str


OPTIONS = (
    Option(
        "disabled",
        "boolean",
        "False",
        "True",
        "Run all tasks exactly as the stock SparkSubmitOperator would: nothing is injected or "
        "collected.",
    ),
    Option(
        "strict",
        "boolean",
        "False",
        "True",
        "Fail a task before it submits when its lineage cannot be collected, instead of running "
        "it without.",
    ),
    Option(
        "observe",
        "boolean",
        "True",
        "False",
        "Observe in the PySpark driver which partitions are really read and written.",
    ),
    Option(
        "listener_jar",
        "string",
        "",
        "/opt/spark/lineage/openlineage-spark_2.13-1.53.0.jar",
        "Path of the OpenLineage listener jar on the worker. Empty: a listener in "
        "$SPARK_HOME/jars, else the cache that `sparklineage fetch-listener` fills.",
    ),
    Option(
        "capture_location",
        "string",
        "",
        "/var/lib/airflow/sparklineage",
        "Directory on the worker for capture bundles, private to the worker's user. Empty: a "
        "directory of the user in the temporary folder.",
    ),
    Option(
        "max_partitions",
        "integer",
        "100",
        "1000",
        "Partitions that the event names of one dataset; of more it says the range, the filter or "
        "how many they were. 0: never name them.",
    ),
    Option(
        "max_locations",
        "integer",
        "100",
        "0",
        "Locations that the event names of one dataset, where partitions are not known. 0: never.",
    ),
    Option(
        "max_event_bytes",
        "integer",
        str(DEFAULT_MAX_EVENT_BYTES),
        "900000",
        "Bytes of the lineage that one event may have. Of a larger one detail is left out, "
        "descriptions of column lineage first, and the event says what.",
    ),
    Option(
        "redact_literals",
        "boolean",
        "False",
        "True",
        "Hide the literals of filters and of descriptions of column lineage: `?` stands for each. "
        "Partitions and locations are said all the same.",
    ),
    Option(
        "partitioning",
        "string",
        "",
        "/etc/airflow/partitioning.yaml",
        "How the organisation partitions its datasets: a YAML file of rules, or the rules "
        "themselves.",
    ),
    Option(
        "emit_bare_partitions_facet",
        "boolean",
        "False",
        "True",
        "Say the partitioning of outputs also in a dataset facet `partitions`, as OpenLineage's "
        "partitioning proposal has it.",
    ),
    Option(
        "column_lineage",
        "string",
        "compact",
        "legacy",
        "How column lineage says what influences all columns of an output (filters, joins, "
        "groupings): `compact`, once, or `legacy`, with every column, for backends that know no "
        "other form; refused, and said, above 500 edges per output.",
    ),
    Option(
        "intermediate_datasets",
        "string",
        "keep",
        "drop: s3://lake/tmp/*, /staging/*",
        "Datasets that a task wrote only to read them back are its outputs (`keep`) or not "
        "(`drop`); after `drop:` globs say which. Column lineage goes through them either way.",
    ),
    Option(
        "emit_lineage_facet",
        "boolean",
        "False",
        "True",
        "Say which inputs feed which output also in OpenLineage's job facet `lineage`, which is "
        "experimental: a task that makes C of A and D of B then says that A does not feed D.",
    ),
    Option(
        "keep_captures",
        "string",
        "degraded",
        "all",
        "Which capture bundles outlive their try: `degraded` (failed tries and incomplete "
        "lineage), `all`, `none`.",
    ),
    Option(
        "capture_retention",
        "float",
        "7",
        "1",
        "Days after which a kept capture bundle is deleted.",
    ),
    Option(
        "collect_timeout",
        "float",
        "30",
        "10",
        "Seconds that collecting and merging may take after Spark has ended.",
    ),
)


def default_capture_location() -> Path:
    """Give the capture location if none is configured: the user's own, in the temporary folder."""
    return Path(tempfile.gettempdir()) / f"sparklineage-{os.getuid()}"


@dataclass(frozen=True)
class Settings:
    """All settings of one try; times are spans, paths absolute."""

    disabled: bool = False
    strict: bool = False
    observe: bool = True
    listener_jar: Path | None = None
    capture_location: Path = field(default_factory=default_capture_location)
    max_partitions: int = 100
    max_locations: int = 100
    max_event_bytes: int = DEFAULT_MAX_EVENT_BYTES
    redact_literals: bool = False
    partitioning: PartitionRules = NO_RULES
    emit_bare_partitions_facet: bool = False
    column_lineage: ColumnLineageForm = ColumnLineageForm.COMPACT
    intermediate_datasets: Intermediates = KEEP
    emit_lineage_facet: bool = False
    keep_captures: KeepCaptures = KeepCaptures.DEGRADED
    capture_retention: timedelta = timedelta(days=7)
    collect_timeout: timedelta = timedelta(seconds=30)

    @property
    def limits(self) -> Limits:
        """How many partitions and locations an event names."""
        return Limits(self.max_partitions, self.max_locations)

    @property
    def representation(self) -> Representation:
        """How lineage is said."""
        return Representation(
            self.emit_bare_partitions_facet,
            self.emit_lineage_facet,
            self.max_event_bytes,
            self.redact_literals,
        )

    def described(self) -> dict[str, str]:
        """Every setting as text, for the manifest; none of them is a secret."""
        return {name: str(getattr(self, name)) for name in self.__dataclass_fields__}


def resolve(
    option: Callable[[str], str | None],
    *,
    strict: bool | None = None,
    observe: bool | None = None,
    column_lineage: str | None = None,
) -> Settings:
    """Resolve the settings of a try.

    :param option: value of an option of the ``[sparklineage]`` section, None or "" if not set
    :param strict: operator argument; None leaves it to the configuration
    :param observe: operator argument; None leaves it to the configuration
    :param column_lineage: operator argument; None leaves it to the configuration
    :raise SettingsError: if a value is impossible; names the option and what it may be
    """
    jar = option("listener_jar")
    location = option("capture_location")
    partitioning = option("partitioning")
    return Settings(
        disabled=_boolean(option, "disabled"),
        strict=_boolean(option, "strict") if strict is None else strict,
        observe=_boolean(option, "observe", "true") if observe is None else observe,
        listener_jar=Path(jar).expanduser() if jar else None,
        capture_location=_absolute(location) if location else default_capture_location(),
        max_partitions=int(_number(option, "max_partitions", 100)),
        max_locations=int(_number(option, "max_locations", 100)),
        max_event_bytes=int(
            _number(option, "max_event_bytes", DEFAULT_MAX_EVENT_BYTES, below=1e12)
        ),
        redact_literals=_boolean(option, "redact_literals"),
        partitioning=rules.load(partitioning) if partitioning else NO_RULES,
        emit_bare_partitions_facet=_boolean(option, "emit_bare_partitions_facet"),
        column_lineage=_form(option, column_lineage),
        intermediate_datasets=Intermediates.of(option("intermediate_datasets") or "keep"),
        emit_lineage_facet=_boolean(option, "emit_lineage_facet"),
        keep_captures=_choice(option, "keep_captures"),
        capture_retention=timedelta(days=_number(option, "capture_retention", 7)),
        collect_timeout=timedelta(seconds=_number(option, "collect_timeout", 30)),
    )


def _boolean(option: Callable[[str], str | None], name: str, default: str = "false") -> bool:
    text = (option(name) or default).strip().lower()
    if text in ("true", "t", "1", "yes", "on"):
        return True
    if text in ("false", "f", "0", "no", "off"):
        return False
    msg = f"[{SECTION}] {name} is {text!r}; it must be True or False."
    raise SettingsError(msg)


def _number(
    option: Callable[[str], str | None], name: str, default: float, *, below: float = 1e6
) -> float:
    text = (option(name) or str(default)).strip()
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < below:
        msg = f"[{SECTION}] {name} is {text!r}; it must be a number that is not negative."
        raise SettingsError(msg)
    return value


def _choice(option: Callable[[str], str | None], name: str) -> KeepCaptures:
    text = (option(name) or KeepCaptures.DEGRADED).strip().lower()
    if text not in [*KeepCaptures]:
        msg = f"[{SECTION}] {name} is {text!r}; it must be one of {', '.join(KeepCaptures)}."
        raise SettingsError(msg)
    return KeepCaptures(text)


def _form(option: Callable[[str], str | None], argument: str | None) -> ColumnLineageForm:
    said = argument if argument is not None else option("column_lineage")
    text = str(said or ColumnLineageForm.COMPACT).strip().lower()
    if text not in [*ColumnLineageForm]:
        where = f"[{SECTION}] column_lineage" if argument is None else "column_lineage"
        msg = f"{where} is {text!r}; it must be one of {', '.join(ColumnLineageForm)}."
        raise SettingsError(msg)
    return ColumnLineageForm(text)


def _absolute(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_absolute():
        msg = (
            f"[{SECTION}] capture_location is {text!r}; it must be an absolute path on the worker."
        )
        raise SettingsError(msg)
    return path
