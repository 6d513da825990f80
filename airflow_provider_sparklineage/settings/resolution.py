"""The settings of one try: operator argument, else connection, else configuration, else default.

Sources are mappings, so nothing here knows Airflow; who asks Airflow for them is
:mod:`airflow_provider_sparklineage.hooks.sources`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import field

from airflow_provider_sparklineage.model.credentials import HIDDEN, scrub
from airflow_provider_sparklineage.model.exceptions import RulesError, SettingsError
from airflow_provider_sparklineage.model.representation import Leaving, Limits, Representation
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.settings.options import OPTIONS, SECTION, Option

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta
    from pathlib import Path

    from airflow_provider_sparklineage.model.representation import ColumnLineageForm, Intermediates
    from airflow_provider_sparklineage.model.rules import PartitionRules
    from airflow_provider_sparklineage.settings.option_kinds import BackendName, KeepCaptures
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureLocation
    from airflow_provider_sparklineage.spark.submit.injection import ExistingTransport


class Origin(StrEnum):
    """Where a value may come from; the first that has one wins."""

    ARGUMENT = "argument"
    CONNECTION = "connection"
    CONFIGURATION = "configuration"
    EXECUTOR = "default: a folder in AIRFLOW_HOME, as the executor is local"
    DEFAULT = "default"


class Source(Frozen, frozen=True):
    """Values of options from one origin; None and empty text are no values.

    :param conn_id: id of the connection, if that is where they come from
    """

    origin: Origin
    values: Mapping[str, object] = field(default_factory=dict)
    conn_id: str = ""

    def __str__(self) -> str:
        if self.origin is Origin.CONNECTION:
            return f"connection {self.conn_id}"
        return f"[{SECTION}]" if self.origin is Origin.CONFIGURATION else self.origin.value

    def place(self, name: str) -> str:
        """Say where the value of an option is, to a person who has to change it."""
        if self.origin is Origin.CONNECTION:
            return f"{name} in the extra of connection {self.conn_id}"
        return f"[{SECTION}] {name}" if self.origin is Origin.CONFIGURATION else name


NO_CONNECTION = Source(Origin.CONNECTION)


class Given(Frozen, frozen=True):
    """What a source has for an option."""

    option: Option
    value: object
    source: Source

    @property
    def is_secret(self) -> bool:
        """Whether none of the value may be shown.

        Of what has an ``@`` and no scheme nobody can tell what is a password.
        """
        text = str(self.value)
        return self.option.sensitive or ("@" in text and "://" not in text)

    def read(self) -> Any:
        """Make the setting's value of it.

        :raise SettingsError: if it is impossible; names the place and what it may be
        """
        try:
            return self.option.kind.read(self.value)
        except RulesError:
            raise  # names file, line and key
        except (ValueError, OverflowError):
            place, kind = self.source.place(self.option.name), self.option.kind
            shown = HIDDEN if self.is_secret else repr(self.value)
            problem = f"{place} is {shown}."
            fix = f"It must be {kind.must_be}."
            raise SettingsError(problem, fix) from None  # the error quotes what is hidden here


_DEFAULT = Source(Origin.DEFAULT, {option.name: option.default for option in OPTIONS})


class Settings(Frozen, frozen=True):
    """All settings of one try, a field for each option; times are spans, paths absolute."""

    disabled: bool
    adopt: str
    declarations: str
    strict: bool
    observe: bool
    backend: BackendName
    web_url: str | None
    listener_jar: Path | str | None
    fetch_listener: bool
    spark_version: tuple[str, str] | None
    listener_extensions: tuple[str, ...]
    existing_transport: ExistingTransport
    capture_location: CaptureLocation
    capture_location_in_spark: str
    capture_endpoint: str
    capture_location_shared: bool
    max_partitions: int
    max_event_bytes: int
    max_columns: int
    describe_datasets: bool
    redact_literals: bool
    partitioning: PartitionRules
    emit_bare_partitions_facet: bool
    column_lineage: ColumnLineageForm
    intermediate_datasets: Intermediates
    emit_lineage_facet: bool
    relay_spark_events: bool
    archive_url: str
    history_url: str
    keep_captures: KeepCaptures
    capture_retention: timedelta
    collect_timeout: timedelta
    archive_is_default: bool = False
    """Whether ``archive_url`` is the folder that is used if none is configured."""

    @property
    def limits(self) -> Limits:
        """How many partitions of a dataset an event names."""
        return Limits(self.max_partitions)

    @property
    def representation(self) -> Representation:
        """How lineage is written."""
        return Representation(
            self.emit_bare_partitions_facet,
            self.emit_lineage_facet,
            self.max_event_bytes,
            self.redact_literals,
        )

    @property
    def leaving(self) -> Leaving:
        """What is done for the backend with an event when it leaves."""
        return Leaving(self.backend, self.describe_datasets, self.max_columns, self.max_event_bytes)

    def described(self) -> dict[str, str]:
        """Every setting that is no secret as text, for the manifest."""
        return {o.name: scrub(str(getattr(self, o.name))) for o in OPTIONS if not o.sensitive}


def given(*sources: Source) -> tuple[Given, ...]:
    """Find for every option which source decides.

    :param sources: in any order; arguments win over a connection, that over the configuration
    """
    order = sorted(sources, key=lambda source: [*Origin].index(source.origin))
    return tuple(_given(option, (*order, _DEFAULT)) for option in OPTIONS)


def _given(option: Option, sources: tuple[Source, ...]) -> Given:
    for source in sources:
        value = source.values.get(option.name)
        if value is not None and (value != "" or source is _DEFAULT):
            return Given(option, value, source)
    raise AssertionError(option.name)  # the table has defaults for all


def value(name: str, *sources: Source) -> Any:
    """Resolve one setting.

    :raise SettingsError: if its value is impossible
    """
    return next(found for found in given(*sources) if found.option.name == name).read()


def place(name: str, *sources: Source) -> str:
    """Say where the value of a setting is, to a person who has to change it."""
    return next(found.source.place(name) for found in given(*sources) if found.option.name == name)


def resolve(*sources: Source) -> Settings:
    """Resolve the settings of a try; without sources these are the defaults.

    :raise SettingsError: if a value is impossible; names where it stands and what it may be
    """
    found = {one.option.name: one for one in given(*sources)}
    values = {name: one.read() for name, one in found.items()}
    is_default = found["archive_url"].source.origin is Origin.EXECUTOR
    return Settings(**values, archive_is_default=is_default)
