"""The settings that come from Airflow's configuration, connections and executors.

The module gives sources of values
(:class:`~airflow_provider_sparklineage.settings.resolution.Source`), the transport of Airflow's
OpenLineage provider, and the URLs of archive and history.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook
from airflow.providers.common.compat.sdk import conf as airflow_conf
from airflow.sdk.log import mask_secret
from msgspec.structs import replace

from airflow_provider_sparklineage.model.credentials import logger, scrub
from airflow_provider_sparklineage.model.exceptions import (
    ConnectionFieldsError,
    SettingsError,
    SparkLineageError,
)
from airflow_provider_sparklineage.settings import connection as connections
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.connection import CONN_TYPE, DEFAULT_CONN_ID
from airflow_provider_sparklineage.settings.options import OPTIONS, SECTION, Option
from airflow_provider_sparklineage.settings.resolution import Origin, Settings, Source

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datahub.configuration import Conversion
    from airflow_provider_sparklineage.settings.option_kinds import HistoryMerger, OtherProducers

log = logger(__name__)

_TRANSPORT = '{"type": "http", "url": "http://marquez:5000"}'
_NAME_THE_STORE = "Set [sparklineage] history_url, or name the store with --store."


def configuration(*names: str) -> Source:
    """Read the options of the ``[sparklineage]`` section, also from environment variables.

    An option that is not set is left out, although Airflow returns the provider's default for it.

    :param names: the names of the options to read; without names all options are read
    :raise SettingsError: if Airflow cannot read a value
    """
    options = [option for option in OPTIONS if not names or option.name in names]
    configured = {option.name: _configured(option) for option in options}
    values = {o.name: configured[o.name] for o in options if configured[o.name] != o.default}
    return Source(Origin.CONFIGURATION, values)


def for_settings(connection: connections.LineageConnection | None) -> tuple[Source, ...]:
    """Give all sources of settings except the operator's arguments.

    :param connection: the task's connection; None if the task has no connection
    :raise SettingsError: if Airflow cannot read a value
    """
    configured = replace(configuration(), airflow_url=_airflow_url())
    return connections.source_of(connection), configured, default_archive()


def _airflow_url() -> str:
    """Give ``[api] base_url``; empty if it is not set, as Airflow's default is right for few."""
    with suppress(Exception):  # it cannot be read; nothing but links depends on it
        return scrub(airflow_conf.get("api", "base_url", fallback=None) or "")
    return ""


def _configured(option: Option) -> str | None:
    try:
        value: str | None = airflow_conf.get(SECTION, option.name, fallback=None)
    except Exception as error:  # mostly from configparser
        # The error's text has a part of the value, and scrubbing does not recognise half of a key.
        problem = f"[{SECTION}] {option.name} cannot be read ({type(error).__name__})."
        fix = "In airflow.cfg a % has to be written as %%."
        raise SettingsError(problem, fix) from None
    return value


def connection(conn_id: str) -> connections.LineageConnection | None:
    """Read a connection of type ``sparklineage``; None if the default connection is missing.

    :raise ConnectionFieldsError: if another connection is missing, or if the connection is of
        another type, cannot be read, or has impossible fields
    """
    try:
        stored = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        if conn_id == DEFAULT_CONN_ID:
            return None
        raise missing(conn_id) from None
    except Exception as error:  # from any secrets backend that Airflow is configured with
        msg = f"Connection {conn_id} cannot be read ({type(error).__name__}: {error})."
        raise ConnectionFieldsError(msg) from error
    content = connections.read(
        conn_id,
        conn_type=stored.conn_type or "",
        host=stored.host,
        port=stored.port,
        schema=stored.schema,
        password=stored.password,
        extra=stored.extra,
    )
    if content.api_key:
        mask_secret(content.api_key)
    return content


def missing(conn_id: str) -> ConnectionFieldsError:
    """Make the error of a missing connection."""
    fix = (
        f"Add it: airflow connections add {conn_id} --conn-type {CONN_TYPE} --conn-host "
        "http://marquez:5000"
    )
    return ConnectionFieldsError(f"There is no connection {conn_id}.", fix)


def without_transport(conn_id: str) -> ConnectionFieldsError:
    """Make the error of a missing connection that ``[openlineage] config_conn_id`` names."""
    problem = f"There is no connection {conn_id}, which [openlineage] config_conn_id names."
    fix = (
        f"Add it: airflow connections add {conn_id} --conn-type {CONN_TYPE} --conn-extra "
        f"'{{\"transport\": {_TRANSPORT}}}'"
    )
    return ConnectionFieldsError(problem, fix)


def transport() -> tuple[dict[str, Any] | None, str]:
    """Give the transport of Airflow's OpenLineage provider, and the id of its connection.

    :return: the transport, or None if the provider has no transport or is disabled; and the id,
        which is empty if the transport is not from a connection
    :raise ConnectionFieldsError: if the provider cannot read the transport
    """
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
    from openlineage.client import OpenLineageClient

    if conf.is_disabled():
        return None, ""
    conn_id = conf.config_conn_id()
    try:
        config = OpenLineageAdapter().get_openlineage_config()
        # If Airflow has no configuration, the client reads its own files and environment variables.
        configured = config.get("transport") if config else OpenLineageClient().config.transport
    except AirflowNotFoundException:
        raise without_transport(conn_id) from None
    except Exception as error:
        place, fix = "The section [openlineage]", f"Set its transport to {_TRANSPORT}, or the like."
        if conn_id:
            place = f"Connection {conn_id}"
            fix = f'Give its extra one: {{"transport": {_wanted_transport(conn_id)}}}.'
        elif path := conf.config_path(check_legacy_env_var=False):
            place = f"{path}, which [openlineage] config_path names,"
            fix = f"Make it a YAML file that the worker may read, with a transport: {_TRANSPORT}."
        # The message lacks the error's text, which may have the transport, and so a key.
        problem = f"{place} gives Airflow no transport ({type(error).__name__})."
        raise ConnectionFieldsError(problem, fix) from error
    return dict(configured) if isinstance(configured, dict) else None, conn_id


def conversion() -> Conversion:
    """Give the settings by which Airflow's transport to DataHub converts events.

    :return: the settings of the first transport to DataHub; the default if no transport is to
        DataHub, or if the transport cannot be read (the command ``doctor`` reports this)
    """
    from airflow_provider_sparklineage.datahub import configuration

    try:
        configured, _ = transport()
        to_datahub = connections.transports_of(connections.DATAHUB_TYPES, configured or {})
        return configuration.conversion_of(next(to_datahub, ("", {}))[1])
    except SparkLineageError as error:
        log.debug("The transport to DataHub cannot be read: %s", error)
        return configuration.DEFAULT_CONVERSION


def _wanted_transport(conn_id: str) -> str:
    """Give the transport to a connection's host, as JSON, for a message.

    If the connection cannot be read, the transport is an example.
    """
    try:
        content = connection(conn_id)
    except ConnectionFieldsError:
        content = None
    return content.wanted_transport if content else _TRANSPORT


def ready_client() -> dict[str, Any] | None:
    """Make the client of Airflow's OpenLineage provider before the provider forks; never raises.

    The client is made only if a connection has the transport. Without this, the provider would make
    the client in every process that it forks to send an event. In ``airflow dags test`` such a
    process gets no answer when it requests a connection, and the event is lost. Only a transport
    that has neither threads nor open connections can be made before the fork.

    The provider itself reports errors of its configuration when it sends.

    :return: the transport; None if the provider has no transport, or if it cannot be read
    """
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    try:
        if conf.is_disabled():
            return None
        conn_id = conf.config_conn_id()
        if not conn_id and not conf.config_path(check_legacy_env_var=False):
            # The configured transport, without a look-up of a connection that may have its key.
            return conf.transport() or transport()[0]
        configured, _ = transport()
        types = connections.types_of(configured or {})
        if conn_id and {"http", connections.DATAHUB_TRANSPORT}.issuperset(types):
            get_openlineage_listener().adapter.get_or_create_openlineage_client()
    except Exception:
        log.debug("The OpenLineage client cannot be made beforehand.", exc_info=True)
        return None
    return configured


def is_kept_unsent(settings: Settings) -> bool:
    """Whether lineage is collected for the archive alone if Airflow does not send it.

    It is collected for a configured archive. It is collected for the default archive only if
    Airflow's OpenLineage provider is neither set up nor switched off, and the task is not
    ``strict``.
    """
    if not settings.archive_is_default:
        return bool(settings.archive_url or settings.history)
    return not settings.strict and is_unset()


def is_unset() -> bool:
    """Whether Airflow's OpenLineage provider is neither set up nor switched off."""
    from airflow.providers.openlineage import conf

    try:
        is_switched_off = airflow_conf.getboolean("openlineage", "disabled", fallback=False)
        legacy = os.environ.get("OPENLINEAGE_DISABLED", "").lower() in ("true", "1", "t")
        return conf.is_disabled() and not is_switched_off and not legacy
    except Exception:  # the provider is set up, but its configuration cannot be read
        return False


def why_not_sent() -> SettingsError | None:
    """Give an error that says why Airflow sends no lineage; None if Airflow sends lineage."""
    # These are the checks of is_openlineage_active(), whose package would import a SQL parser.
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    try:
        if not conf.is_disabled() and get_openlineage_listener() is not None:
            return None
    except Exception as error:  # the provider's configuration is not a JSON object
        return SettingsError(
            "Airflow's OpenLineage provider cannot read its configuration "
            f"({type(error).__name__}).",
            f"Give [openlineage] transport a JSON object with a type, e.g. {_TRANSPORT}.",
        )
    return SettingsError(
        "Airflow's OpenLineage provider is disabled, or it has no transport.",
        "Put the transport into the extra of a connection and set "
        "AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID to its id, or set AIRFLOW__OPENLINEAGE__TRANSPORT; "
        "lineage=False is the task without lineage.",
    )


_PLUGIN = "airflow_provider_sparklineage.plugins.lineage_tab:SparkLineagePlugin"


def why_not_loaded() -> SettingsError | None:
    """Give an error that says why a task lacks the listener of Airflow's OpenLineage provider.

    Airflow's tasks load no further plugins when they meet one for the second time, which happens if
    a distribution is installed in two places of the path. Airflow logs nothing about it.

    :return: None if the listener is there, or if it is missing for another reason
    """
    try:
        from airflow.providers.openlineage.plugins.listener import get_openlineage_listener
        from airflow.sdk.listener import get_listener_manager

        if get_listener_manager().pm.is_registered(get_openlineage_listener()):
            return None
    except Exception:  # the provider's configuration, or a plugin of somebody else
        return None
    for plugin, places in plugins_found_twice().items():
        if plugin != _PLUGIN:  # which copes with it
            return SettingsError(
                f"Airflow finds the plugin {plugin} in {' and in '.join(places)}. Its tasks load "
                "no plugin after that, and so lack the listener of its OpenLineage provider.",
                "Remove one of the two.",
            )
    return None


def places_of_plugin() -> tuple[str, ...]:
    """Give the places where Airflow finds the plugin of this package, if there are several."""
    return plugins_found_twice().get(_PLUGIN, ())


def plugins_found_twice() -> dict[str, tuple[str, ...]]:
    """Give the plugins that are installed in more than one place, each with the places.

    A place is a folder of the path. It is given twice if it is twice on the path.
    """
    places = defaultdict[str, list[str]](list)
    for distribution in metadata.distributions():
        with suppress(Exception):  # its metadata is damaged: Airflow leaves it out, too
            for entry in distribution.entry_points.select(group="airflow.plugins"):
                places[entry.value].append(str(distribution.locate_file("")))
    return {plugin: tuple(found) for plugin, found in places.items() if len(found) > 1}


# The default archive depends on the machines on which Airflow's executors run tasks. Only if all
# tasks run on the scheduler's machine do workers, API server and commands see the same folder. So
# there is no default archive if one of the executors is not local.

_LOCAL_EXECUTOR = "LocalExecutor"
# Airflow sets these variables in the places where a remote executor runs a task, because the
# configuration there often names the LocalExecutor.
_SET_BY_REMOTE_EXECUTORS = ("AIRFLOW_IS_K8S_EXECUTOR_POD", "AIRFLOW_IS_EXECUTOR_CONTAINER")


def default_archive() -> Source:
    """Give the archive that is used if no archive is configured, as a source of settings.

    :return: a source without a value if an executor runs tasks on other machines
    """
    if remote_executors():
        return Source(Origin.EXECUTOR)
    home = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser().absolute()
    folder = os.path.expandvars(home / "sparklineage" / "archive")
    # Python keeps two leading slashes, which a URL would take for an authority.
    return Source(Origin.EXECUTOR, {"archive_url": f"file:///{folder.lstrip('/')}"})


def remote_executors() -> tuple[str, ...]:
    """Name the executors that run tasks on other machines; () if all executors are local."""
    if any(map(os.environ.get, _SET_BY_REMOTE_EXECUTORS)):
        return ("a remote executor",)
    configured = airflow_conf.get("core", "executor", fallback=_LOCAL_EXECUTOR) or _LOCAL_EXECUTOR
    # A team may have several executors, as in
    # "LocalExecutor;team=alias:my.module.MyExecutor,CeleryExecutor".
    names = (re.split(r"[=:.]", one.strip())[-1] for one in re.split("[;,]", configured))
    return tuple(dict.fromkeys(name for name in names if name and name != _LOCAL_EXECUTOR))


def history_url() -> str:
    """Give the URL of the history's store, from ``[sparklineage] history_url``.

    If this option is not set, the store is the folder ``history`` next to the archive.

    :raise SettingsError: if a value is impossible, if neither the option nor an archive is set, or
        if the archive is a whole bucket, so that there is no place next to it
    """
    configured: str = resolution.value("history_url", configuration("history_url"))
    archive = "" if configured else archive_url()
    if url := resolution.history_of(configured, archive):
        return url
    problem = "No store of the history is configured, and no archive that it could be next to."
    if archive:  # it is a whole bucket
        problem = f"The archive {archive} has no folder around it, in which the history could be."
    raise SettingsError(problem, _NAME_THE_STORE)


def history_merged_by() -> HistoryMerger:
    """Give ``[sparklineage] history_merged_by``.

    :raise SettingsError: if the option's value is impossible
    """
    merger: HistoryMerger = resolution.value(
        "history_merged_by", configuration("history_merged_by")
    )
    return merger


def history_other_producers() -> OtherProducers:
    """Give ``[sparklineage] history_other_producers``.

    :raise SettingsError: if the option's value is impossible
    """
    seen_by: OtherProducers = resolution.value(
        "history_other_producers", configuration("history_other_producers")
    )
    return seen_by


def archive_url() -> str:
    """Give the URL of the configured or the default archive; empty if there is no archive.

    :raise SettingsError: if the option's value is impossible
    """
    url: str = resolution.value("archive_url", configuration("archive_url"), default_archive())
    return url
