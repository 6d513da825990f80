"""The settings of one try, each from the first source that has a value for it.

The sources are, in this order, the operator's argument, the connection, the configuration, and the
default. They are mappings, so this module imports no Airflow;
:mod:`airflow_provider_sparklineage.hooks.sources` makes the sources of Airflow's configuration and
connections.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import field

from airflow_provider_sparklineage.model.credentials import HIDDEN, scrub
from airflow_provider_sparklineage.model.exceptions import RulesError, SettingsError
from airflow_provider_sparklineage.model.representation import (
    DEFAULT_MAX_COLUMNS,
    Adaptation,
    Limits,
    Representation,
)
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.settings.options import OPTIONS, SECTION, Option, Options

if TYPE_CHECKING:
    from collections.abc import Mapping


class Origin(StrEnum):
    """The origins of a value, in order: the value of the first origin that has one is used."""

    ARGUMENT = "argument"
    CONNECTION = "connection"
    CONFIGURATION = "configuration"
    EXECUTOR = "default: a folder in AIRFLOW_HOME, as the executor is local"
    DEFAULT = "default"


class Source(Frozen, frozen=True):
    """The values of options from one origin; None and empty text are not values.

    :param values: values by the name of the option
    :param conn_id: id of the connection if the origin is a connection, else empty
    :param airflow_url: URL of Airflow's pages if the origin is the configuration and has it
    """

    origin: Origin
    values: Mapping[str, object] = field(default_factory=dict)
    conn_id: str = ""
    airflow_url: str = ""

    def __str__(self) -> str:
        if self.origin is Origin.CONNECTION:
            return f"connection {self.conn_id}"
        return f"[{SECTION}]" if self.origin is Origin.CONFIGURATION else self.origin.value

    def place(self, name: str) -> str:
        """Name the place where an option's value can be changed, for messages."""
        if self.origin is Origin.CONNECTION:
            return f"{name} in the extra of connection {self.conn_id}"
        return f"[{SECTION}] {name}" if self.origin is Origin.CONFIGURATION else name


class OptionValue(Frozen, frozen=True):
    """The value of an option, as its source has it."""

    option: Option
    value: object
    source: Source

    @property
    def is_secret(self) -> bool:
        """Whether the value must be hidden in full.

        This holds for texts with an ``@`` and without a scheme, in which a password cannot be
        recognised.
        """
        text = str(self.value)
        return "@" in text and "://" not in text

    def read(self) -> Any:
        """Convert the value by the reader of the option's kind (:attr:`Option.kind`).

        :raise SettingsError: if the value is impossible; the error names its place and the possible
            values
        """
        try:
            return self.option.kind.read(self.value)
        except RulesError:
            raise  # the error names file, line and key
        except (ValueError, OverflowError):
            place, kind = self.source.place(self.option.name), self.option.kind
            shown = HIDDEN if self.is_secret else repr(self.value)
            problem = f"{place} is {shown}."
            fix = f"It must be {kind.must_be}."
            raise SettingsError(problem, fix) from None  # the cause quotes the value


_DEFAULT = Source(Origin.DEFAULT, {option.name: option.default for option in OPTIONS})


class Settings(Options, frozen=True):
    """All settings of one try."""

    archive_is_default: bool = False
    """Whether ``archive_url`` is the default folder, because no archive is configured."""
    airflow_url: str = ""
    """URL of Airflow's pages; empty if ``[api] base_url`` is not set."""

    @property
    def limits(self) -> Limits:
        """The limits of an event: the most partitions that it names for a dataset."""
        return Limits(self.max_partitions)

    @property
    def representation(self) -> Representation:
        """The parts that an event has or leaves out, by these settings."""
        return Representation(
            self.emit_bare_partitions_facet,
            self.emit_lineage_facet,
            redact_literals=self.redact_literals,
        )

    @property
    def adaptation(self) -> Adaptation:
        """The adaptation of an event for the backend when it is sent, by these settings.

        With another limit of columns than the default, the backend's time does not change it.
        """
        return Adaptation(
            self.backend,
            self.describe_datasets,
            self.max_columns,
            self.max_event_bytes,
            is_timed=self.max_columns == DEFAULT_MAX_COLUMNS,
            airflow_url=self.airflow_url,
            has_history=bool(self.history),
        )

    @property
    def history(self) -> str:
        """URL of the history's store; empty if there is no place for it (:func:`history_of`)."""
        return history_of(self.history_url, self.archive_url)

    def described(self) -> dict[str, str]:
        """Give the settings as text, without credentials, for the manifest."""
        return {o.name: scrub(str(getattr(self, o.name))) for o in OPTIONS}


def history_of(url: str, archive_url: str) -> str:
    """Give the URL of the history's store, by default of the folder ``history`` next to an archive.

    :param url: the option ``history_url``, which may be empty
    :param archive_url: URL of the archive; empty if there is none
    :return: empty if there is no archive, or it is a whole bucket and so has no folder next to it
    """
    if url or not urlsplit(archive_url).path.strip("/"):
        return url
    return f"{archive_url.rstrip('/').rpartition('/')[0]}/history"


def option_values(*sources: Source) -> dict[str, OptionValue]:
    """Find the value of every option, and the source of the value, by the option's name.

    :param sources: the sources, in any order; the first origin in :class:`Origin` that has a value
        gives it
    """
    order = sorted(sources, key=lambda source: [*Origin].index(source.origin))
    return {option.name: _option_value(option, order) for option in OPTIONS}


def _option_value(option: Option, sources: list[Source]) -> OptionValue:
    with_value = (one for one in sources if one.values.get(option.name) not in (None, ""))
    source = next(with_value, _DEFAULT)
    return OptionValue(option, source.values[option.name], source)


def value(name: str, *sources: Source) -> Any:
    """Resolve one setting by the name of its option.

    :raise SettingsError: if the setting's value is impossible
    """
    return option_values(*sources)[name].read()


def place(name: str, *sources: Source) -> str:
    """Name the place where a setting's value can be changed, for messages."""
    return option_values(*sources)[name].source.place(name)


def resolve(*sources: Source) -> Settings:
    """Resolve the settings of a try; without sources all settings have their defaults.

    :raise SettingsError: if a value is impossible; the error names its place and the possible
        values
    """
    values = option_values(*sources)
    is_default = values["archive_url"].source.origin is Origin.EXECUTOR
    return Settings(
        **{name: value.read() for name, value in values.items()},
        archive_is_default=is_default,
        airflow_url="".join(source.airflow_url for source in sources),
    )
