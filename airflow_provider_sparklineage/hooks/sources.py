"""Settings as Airflow has them: its configuration, its connections, and what follows from both.

Sources of values come out (:class:`~airflow_provider_sparklineage.settings.resolution.Source`),
the transport of Airflow's OpenLineage provider, and where archive and history are.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook
from airflow.providers.common.compat.sdk import conf as airflow_conf
from airflow.sdk.log import mask_secret

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import ConnectionFieldsError, SettingsError
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.connection import (
    CONN_TYPE,
    DATAHUB_TRANSPORT,
    DEFAULT_CONN_ID,
    LineageConnection,
    read,
    source_of,
    types_of,
)
from airflow_provider_sparklineage.settings.options import OPTIONS, SECTION, Option
from airflow_provider_sparklineage.settings.resolution import Origin, Settings, Source

log = logger(__name__)

_TRANSPORT = '{"type": "http", "url": "http://marquez:5000"}'
_NAME_THE_STORE = "Set [sparklineage] history_url, or name the store with --store."


def configuration(*names: str) -> Source:
    """Give what the ``[sparklineage]`` section sets, environment variables included.

    Airflow answers with the provider's defaults as well; those are not set by anyone.

    :param names: of the options that are asked for; all if there are none
    :raise SettingsError: if Airflow cannot read a value
    """
    asked = [option for option in OPTIONS if not names or option.name in names]
    found = {option.name: _configured(option) for option in asked}
    values = {o.name: found[o.name] for o in asked if found[o.name] != o.default}
    return Source(Origin.CONFIGURATION, values)


def for_settings(connection: LineageConnection | None) -> tuple[Source, ...]:
    """Give all sources of settings but the operator's arguments.

    :param connection: the task's, if it has one
    :raise SettingsError: if Airflow cannot read a value
    """
    return source_of(connection), configuration(), default_archive()


def _configured(option: Option) -> str | None:
    try:
        value: str | None = airflow_conf.get(SECTION, option.name, fallback=None)
    except Exception as error:  # of configparser, most of all
        # Without the error's text, which has the value: half of a key is one that nobody knows.
        problem = f"[{SECTION}] {option.name} cannot be read ({type(error).__name__})."
        fix = "In airflow.cfg a % has to be written as %%."
        raise SettingsError(problem, fix) from None
    return value


def connection(conn_id: str) -> LineageConnection | None:
    """Read a connection of type ``sparklineage``; None if it is the default one, and missing.

    :raise ConnectionFieldsError: if it is missing, of another type, or has impossible fields
    """
    try:
        found = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        if conn_id == DEFAULT_CONN_ID:
            return None
        raise missing(conn_id) from None
    except Exception as error:  # of whatever secrets backend Airflow is configured with
        msg = f"Connection {conn_id} cannot be read ({type(error).__name__}: {error})."
        raise ConnectionFieldsError(msg) from error
    known = read(
        conn_id,
        conn_type=found.conn_type or "",
        host=found.host,
        port=found.port,
        schema=found.schema,
        password=found.password,
        extra=found.extra,
    )
    if known.api_key:
        mask_secret(known.api_key)
    return known


def missing(conn_id: str) -> ConnectionFieldsError:
    """Make the error of a connection that is not there."""
    fix = (
        f"Add it: airflow connections add {conn_id} --conn-type {CONN_TYPE} --conn-host "
        "http://marquez:5000"
    )
    return ConnectionFieldsError(f"There is no connection {conn_id}.", fix)


def without_transport(conn_id: str) -> ConnectionFieldsError:
    """Make the error of a connection that is not there, and by which Airflow is to send."""
    problem = f"There is no connection {conn_id}, which [openlineage] config_conn_id names."
    fix = (
        f"Add it: airflow connections add {conn_id} --conn-type {CONN_TYPE} --conn-extra "
        f"'{{\"transport\": {_TRANSPORT}}}'"
    )
    return ConnectionFieldsError(problem, fix)


def transport() -> tuple[dict[str, Any] | None, str]:
    """Give the transport of Airflow's OpenLineage provider, and the connection that it is from.

    :return: None if it has none or is disabled; an empty id if it is from no connection
    :raise ConnectionFieldsError: if it is not one that the provider can read
    """
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
    from openlineage.client import OpenLineageClient

    if conf.is_disabled():
        return None, ""
    conn_id = conf.config_conn_id()
    try:
        config = OpenLineageAdapter().get_openlineage_config()
        # Without a configuration of Airflow's, the client has its own: files and the environment.
        found = config.get("transport") if config else OpenLineageClient().config.transport
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
        # Without the error's text: it may hold the transport, and that a key.
        problem = f"{place} gives Airflow no transport ({type(error).__name__})."
        raise ConnectionFieldsError(problem, fix) from error
    return dict(found) if isinstance(found, dict) else None, conn_id


def _wanted_transport(conn_id: str) -> str:
    """Give the transport that the connection's host and password stand for, as JSON."""
    try:
        known = connection(conn_id)
    except ConnectionFieldsError:
        known = None
    return known.wanted_transport if known else _TRANSPORT


def ready_client() -> dict[str, Any] | None:
    """Make the client of Airflow's OpenLineage provider, if a connection has its transport.

    The provider makes it in every process that it forks to send an event. In ``airflow dags test``
    such a process gets no answer when it asks for a connection, and the event is lost. Only a
    transport that has neither threads nor open connections can be made before the fork.

    Never raises: what is wrong is the provider's to say, when it sends.

    :return: the transport; None if there is none, or none that can be read
    """
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    try:
        if conf.is_disabled():
            return None
        conn_id = conf.config_conn_id()
        if not conn_id and not conf.config_path(check_legacy_env_var=False):
            # As it is configured, without asking for a connection that it may authenticate by.
            return conf.transport() or transport()[0]
        found, _ = transport()
        if conn_id and found and {"http", DATAHUB_TRANSPORT}.issuperset(types_of(found)):
            get_openlineage_listener().adapter.get_or_create_openlineage_client()
    except Exception:
        log.debug("The OpenLineage client cannot be made beforehand.", exc_info=True)
        return None
    return found


def is_kept_unsent(settings: Settings) -> bool:
    """Whether lineage is collected where it is not sent: for the archive alone.

    One that somebody configured is a reason. The default one is, where nobody has set up Airflow's
    OpenLineage provider, nor switched it off, and lineage does not have to be sent.
    """
    if not settings.archive_is_default:
        return bool(settings.archive_url)
    return not settings.strict and _is_unset()


def _is_unset() -> bool:
    from airflow.providers.openlineage import conf

    try:
        is_switched_off = airflow_conf.getboolean("openlineage", "disabled", fallback=False)
        legacy = os.environ.get("OPENLINEAGE_DISABLED", "").lower() in ("true", "1", "t")
        return conf.is_disabled() and not is_switched_off and not legacy
    except Exception:  # it is set up, and cannot be read
        return False


def why_not_sent() -> SettingsError | None:
    """Give the error of an Airflow that sends no lineage; None if it sends it."""
    # As is_openlineage_active() does, whose package imports a parser of SQL with it.
    from airflow.providers.openlineage import conf
    from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

    try:
        if not conf.is_disabled() and get_openlineage_listener() is not None:
            return None
    except Exception as error:  # its configuration is no JSON, or JSON of something else
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


# The archive that is used if none is configured follows from where Airflow's executor runs tasks.
# Only where all tasks run on the scheduler's machine do workers, API server and commands see the
# same folder. So one executor that is not local is enough for none.

_LOCAL_EXECUTOR = "LocalExecutor"
# Airflow sets them where a remote executor's task runs, whose own configuration often says "local".
_SET_BY_REMOTE_EXECUTORS = ("AIRFLOW_IS_K8S_EXECUTOR_POD", "AIRFLOW_IS_EXECUTOR_CONTAINER")


def default_archive() -> Source:
    """Give the archive that is used if none is configured, as a source of settings."""
    if remote_executors():
        return Source(Origin.EXECUTOR)
    home = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser().absolute()
    folder = os.path.expandvars(home / "sparklineage" / "archive")
    return Source(Origin.EXECUTOR, {"archive_url": f"file://{folder}"})


def remote_executors() -> tuple[str, ...]:
    """Name the executors that run tasks on other machines."""
    if any(map(os.environ.get, _SET_BY_REMOTE_EXECUTORS)):
        return ("a remote executor",)
    configured = airflow_conf.get("core", "executor", fallback=_LOCAL_EXECUTOR) or _LOCAL_EXECUTOR
    # One or more for each team: "LocalExecutor;team=alias:my.module.MyExecutor,CeleryExecutor".
    names = (re.split(r"[=:.]", one.strip())[-1] for one in re.split("[;,]", configured))
    return tuple(dict.fromkeys(name for name in names if name and name != _LOCAL_EXECUTOR))


def history_url() -> str:
    """Give the URL of the store: ``[sparklineage] history_url``, else next to the archive.

    :raise SettingsError: if a value is impossible, or there is neither of the two
    """
    configured = configuration("history_url")
    url: str = resolution.value("history_url", configured)
    return url or history_next_to(archive_url())


def archive_url() -> str:
    """Give the URL of the archive that is in force; empty if there is none.

    :raise SettingsError: if its value is impossible
    """
    configured = configuration("archive_url")
    url: str = resolution.value("archive_url", configured, default_archive())
    return url


def history_next_to(archive: str) -> str:
    """Give the URL of the store that belongs to an archive: ``history`` in the same folder.

    :raise SettingsError: if there is no archive, or it has no folder around it
    """
    if not archive:
        problem = "No store of the history is configured, and no archive that it could be next to."
        raise SettingsError(problem, _NAME_THE_STORE)
    if not urlsplit(archive).path.strip("/"):  # all of a bucket is the archive
        problem = f"The archive {archive} has no folder around it, in which the history could be."
        raise SettingsError(problem, _NAME_THE_STORE)
    return f"{archive.rstrip('/').rpartition('/')[0]}/history"
