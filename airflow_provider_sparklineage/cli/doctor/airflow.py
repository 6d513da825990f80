"""Checks of Airflow's half of a set-up.

They check the lineage connection and settings, the adoption rules, the archive of events, the
OpenLineage provider and its backend, and the Spark connection.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow import settings as airflow_settings
from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook
from airflow.providers.common.compat.sdk import conf as airflow_conf
from airflow.providers.openlineage import conf as openlineage
from airflow.providers.openlineage.utils.emission_policy import resolve_task_emission_policy
from msgspec.structs import replace

from airflow_provider_sparklineage.cli import adoption_survey
from airflow_provider_sparklineage.cli.doctor import cluster
from airflow_provider_sparklineage.event.archive import Archive, archive_of
from airflow_provider_sparklineage.event.backends import checks as backend
from airflow_provider_sparklineage.history import incoming
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.hooks.backend_checks import backend_checks
from airflow_provider_sparklineage.model import exceptions
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.operators.adoption import kinds
from airflow_provider_sparklineage.operators.adoption import policy as adopting
from airflow_provider_sparklineage.operators.attempt.timing import Deadline
from airflow_provider_sparklineage.operators.masking import masked_message
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.settings import connection as connections
from airflow_provider_sparklineage.settings import resolution as settings
from airflow_provider_sparklineage.settings.checks import Check, UrlPlace, failed, passed, warning
from airflow_provider_sparklineage.settings.option_kinds import HistoryMerger
from airflow_provider_sparklineage.settings.options import SECTION
from airflow_provider_sparklineage.spark.submit import deploy_mode
from airflow_provider_sparklineage.spark.submit.submission import Submission

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from airflow.providers.common.compat.sdk import BaseOperator

    from airflow_provider_sparklineage.event.archive import Entry
    from airflow_provider_sparklineage.settings.resolution import Settings, Source


CONNECTION, SETTINGS, SPARK_CONNECTION = "connection", "settings", "Spark connection"
INSTALLATION = "installation"
PROVIDER, POLICY, TIME = "OpenLineage provider", "emission policy", "time for events"

_SHORT_S = 10
"""Least number of seconds for sending an event that needs no warning.

It is Airflow's default, and clients retry for about as long while a backend restarts.
"""


class AirflowChecks(Frozen, frozen=True):
    """The checks, with the facts about the set-up that other checks need.

    :param settings: settings that a task would have; the defaults if they cannot be resolved
    :param connection: the settings in the lineage connection
    :param spark_binary: the name of spark-submit in the Spark connection
    :param delivers: whether drivers run in a cluster and deliver the events that they capture
    """

    checks: list[Check]
    settings: Settings
    connection: Source
    spark_binary: str
    delivers: bool


def check(conn_id: str, spark_conn_id: str | None) -> AirflowChecks:
    """Check the set-up that a task with these connections would have.

    :param conn_id: the operator's ``lineage_conn_id``
    :param spark_conn_id: the operator's ``conn_id``; None if a service starts the task's driver
    """
    checks, connection = _connection(conn_id)
    web_place = "web_url"
    try:
        origins = sources.for_settings(connection)
        resolved = settings.resolve(*origins)
    except exceptions.SparkLineageError as error:
        resolved = settings.resolve()
        checks.append(failed(SETTINGS, error))
    else:
        web_place = settings.place("web_url", *origins)
        checks.append(_settings(resolved))
    checks += [
        *_installation(),
        *adoption_checks(resolved),
        *archive_checks(resolved),
        *history_checks(resolved),
    ]
    for one in _transport(connection, resolved, web_place):
        if one.message not in {c.message for c in checks}:  # one error for a missing connection
            checks.append(one)
    spark_binary, host = "", deploy_mode.DriverHost.SERVICE
    if spark_conn_id is not None:
        spark, spark_binary, host = _spark_connection(spark_conn_id, resolved)
        checks.append(spark)
    checks += [*cluster.location_checks(resolved), *cluster.endpoint_checks(resolved)]
    delivers = host.is_remote and bool(resolved.capture_location.url)
    source = connections.source_of(connection)
    return AirflowChecks(checks, resolved, source, spark_binary, delivers)


def for_people(checks: Iterable[Check], connection: Source) -> list[Check]:
    """Correct the places of settings in the texts of checks, and hide secrets that Airflow knows.

    The checks of a machine do not know the lineage connection, and name Airflow's configuration as
    the place of every setting (``[sparklineage] adopt``). If the connection has the setting, its
    place in the connection is named instead.

    :param connection: settings of the lineage connection that the task would have
    """

    def place(option: re.Match[str]) -> str:
        name = option[1]
        return connection.place(name) if name in connection.values else option[0]

    def text(of: str) -> str:
        return masked_message(re.sub(rf"\[{SECTION}\] (\w+)", place, of))

    return [replace(c, message=text(c.message), fix=text(c.fix)) for c in checks]


def _connection(conn_id: str) -> tuple[list[Check], connections.LineageConnection | None]:
    try:
        found = sources.connection(conn_id)
    except exceptions.SparkLineageError as error:
        return [failed(CONNECTION, error)], None
    if found is None and openlineage.config_conn_id() == conn_id:
        return [failed(CONNECTION, sources.without_transport(conn_id))], None
    if found is None:
        text = f"There is no connection {connections.DEFAULT_CONN_ID}, and none is needed."
        return [passed(CONNECTION, text)], None
    looks = f", looks at {found.backend_url}" if found.backend_url else ", names no backend"
    return [passed(CONNECTION, f"{conn_id} is of type sparklineage{looks}.")], found


def _installation() -> list[Check]:
    places = sources.places_of_plugin()
    if not places:
        return []
    text = (
        f"This package is installed {len(places)} times: in {' and in '.join(places)}. Another "
        "package of which that is true would keep the plugins after it out of Airflow's tasks."
    )
    fix = (
        "Remove all but one: `pip install -e .` leaves an *.egg-info in a clone, and Airflow finds "
        "it if the clone is on PYTHONPATH or is the current folder."
    )
    return [warning(INSTALLATION, text, fix)]


def _settings(resolved: Settings) -> Check:
    if resolved.disabled:
        return failed(
            SETTINGS,
            "[sparklineage] disabled is True: all tasks run without lineage.",
            "Set AIRFLOW__SPARKLINEAGE__DISABLED=False, or remove it.",
        )
    return passed(SETTINGS, "All settings can be read.")


# --- the OpenLineage provider ---------------------------------------------------------------------


def _transport(
    connection: connections.LineageConnection | None, resolved: Settings, web_place: str
) -> list[Check]:
    switched_off = _switched_off()
    if switched_off is not None:
        return [switched_off]
    try:
        transport, config_conn_id = sources.transport()
    except exceptions.SparkLineageError as error:
        return [failed(PROVIDER, error)]
    compared = backend.compare(connection, transport, config_conn_id)
    if transport is None and sources.is_kept_unsent(resolved):
        text = "Airflow's OpenLineage provider has no transport: lineage is kept, and not sent."
        return [warning(compared.name, text, compared.fix)]
    if transport is None:
        return [compared]
    place = _transport_place(config_conn_id)
    checks = [_provider(transport, place), _policy(), _time()]
    endpoint = None
    if connection is not None:
        endpoint = backend.endpoint_of(connection, resolved.web_url, web_place)
    if endpoint is None:
        endpoint = _endpoint_of(transport, place, resolved.web_url, web_place)
    checks += backend_checks(endpoint, resolved.backend, transport, place)
    return [*checks, compared]


def _switched_off() -> Check | None:
    if airflow_conf.getboolean("openlineage", "disabled", fallback=False):
        return failed(
            PROVIDER,
            "[openlineage] disabled is True: Airflow sends no lineage.",
            "Set AIRFLOW__OPENLINEAGE__DISABLED=False, or remove it.",
        )
    reason = sources.why_not_sent()
    try:
        has_transport = not openlineage.is_disabled()
    except Exception:  # its configuration cannot be read
        return failed(PROVIDER, reason) if reason else None
    if has_transport and reason:
        return failed(
            PROVIDER,
            "Airflow's OpenLineage provider has a transport, but its listener is not there.",
            "Look for `openlineage` in `airflow plugins`, and in the log for why it is not loaded.",
        )
    not_loaded = sources.why_not_loaded()
    return failed(PROVIDER, not_loaded) if not_loaded else None


def _transport_place(config_conn_id: str) -> str:
    """Name the place of Airflow's transport: of all places, Airflow uses the first that has one.

    :param config_conn_id: the connection that Airflow's ``[openlineage]`` names; empty for none
    """
    if config_conn_id:
        return f"the extra of connection {config_conn_id}"
    if path := openlineage.config_path(check_legacy_env_var=False):
        return f"{path}, which [openlineage] config_path names"
    if openlineage.transport():
        return "Airflow's [openlineage]"
    return "OpenLineage's own configuration (its file, or OPENLINEAGE_… in the environment)"


def _provider(transport: Mapping[str, Any], place: str) -> Check:
    fix = (
        'Give it the backend: {"type": "http", "url": "http://marquez:5000"} as transport in '
        f"{place}."
    )
    kind = str(transport.get("type") or "")
    if kind == "console":
        return warning(
            PROVIDER,
            "Airflow's transport is console: lineage goes into the logs of tasks and nowhere else.",
            fix,
        )
    if kind == "noop":
        return failed(PROVIDER, "Airflow's transport is noop: no lineage is sent.", fix)
    where = f" to {transport['log_file_path']}" if kind == "file" else ""
    text = f"It is active, and sends by its {connections.title_of(transport)}{where}."
    return passed(PROVIDER, text)


def _policy() -> Check:
    """Check that the settings of ``[openlineage]`` let Airflow send tasks' events and lineage."""
    if openlineage.selective_enable():
        return warning(
            POLICY,
            "[openlineage] selective_enable is True: only tasks and DAGs that ask for it have "
            "lineage.",
            "Call enable_lineage(dag) of airflow.providers.openlineage.utils.selective_enable in "
            "the DAG's file, or set selective_enable to False.",
        )
    names = []
    for task in _tasks_with_lineage():
        name = type(task).__name__
        path = kinds.path(type(task))
        names.append(name)
        if path in openlineage.disabled_operators():
            return failed(
                POLICY,
                f"[openlineage] disabled_for_operators names {name}: its events are not sent.",
                f"Take {path} out of it.",
            )
        policy = resolve_task_emission_policy(task, "doctor", "doctor")
        if not (policy.emit and policy.extract_operator_metadata):
            return failed(
                POLICY,
                f"[openlineage] emission_policy keeps {name}'s lineage back.",
                f"Add a rule with scope operator {path} that has emit and "
                "extract_operator_metadata.",
            )
    return passed(POLICY, f"Events of {' and '.join(names)} are sent.")


def _tasks_with_lineage() -> Iterator[BaseOperator]:
    """Yield a task of this package's operator for spark-submit, as an example for checks.

    If adoption is on, also yield a task of each of Airflow's operators that can be adopted.
    """
    yield SparkLineageSubmitOperator(task_id="doctor", application="")
    if not adopting.is_off():  # an adopted task keeps the name of its class
        yield SparkSubmitOperator(task_id="doctor", application="")
        yield PySparkOperator(task_id="doctor", python_callable=lambda spark: spark)


def _time() -> Check:
    seconds = openlineage.execution_timeout()
    if seconds < _SHORT_S:
        return warning(
            TIME,
            f"[openlineage] execution_timeout is {seconds} s: an event that takes longer, because "
            "it is large or the backend slow, is lost silently.",
            f"Set AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT to {_SHORT_S} or more.",
        )
    overtime = airflow_conf.getint("core", "task_success_overtime", fallback=20)
    if seconds > overtime:
        return warning(
            TIME,
            f"[openlineage] execution_timeout is {seconds} s, but Airflow ends the process of a "
            f"successful task after {overtime} s.",
            "Set AIRFLOW__CORE__TASK_SUCCESS_OVERTIME above execution_timeout.",
        )
    return passed(TIME, f"An event may take {seconds} s.")


def _endpoint_of(
    transport: Mapping[str, Any], place: str, web_url: str | None, web_place: str
) -> backend.Endpoint | None:
    """Give the endpoint of the first HTTP transport, for use if no connection names a backend.

    :param place: the place where the transport is configured, in words
    :param web_url: URL of the backend's pages; None if it is not configured
    :param web_place: the place where ``web_url`` is configured, in words
    :return: None if no transport is HTTP
    """
    for path, part in connections.transports_of(connections.HTTP_TYPES, transport):
        if url := connections.api_url(str(part.get("url") or "")):
            return backend.Endpoint(
                url,
                connections.api_key_of(part),
                web_url,
                part.get("verify") is not False,
                place=UrlPlace(f"{path}.url in {place}", f"{path}.auth in {place}"),
                web_place=web_place,
            )
    return None


# --- the Spark connection -------------------------------------------------------------------------


def _spark_connection(
    conn_id: str, resolved: Settings
) -> tuple[Check, str, deploy_mode.DriverHost]:
    """Check the Spark connection.

    :param conn_id: the id of the Spark connection
    :param resolved: the settings of a task
    :return: the check, the name of spark-submit, and the host on which drivers run
    """
    binary = "spark-submit"
    problem = fix = ""
    try:
        found = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        problem = f"There is no connection {conn_id}"
        fix = (
            f"Add it: airflow connections add {conn_id} --conn-type spark --conn-host 'local[*]'; "
            "or name another as the operator's conn_id."
        )
    except Exception as error:  # any error of the configured secrets backend
        problem = f"Connection {conn_id} cannot be read ({type(error).__name__})"
        fix = "Look at [secrets] backend, and at what AIRFLOW_CONN_… has in the environment."
    if problem:
        problem += ": the operator would submit to yarn silently."
        return (warning(SPARK_CONNECTION, problem, fix), binary, deploy_mode.DriverHost.WORKER)
    extra = found.extra_dejson
    binary = str(extra.get("spark-binary") or binary)
    master = f"{found.host}:{found.port}" if found.port else str(found.host or "")
    host = deploy_mode.driver_host(Submission(), master, extra.get("deploy-mode"), os.environ)
    try:
        deploy_mode.require_reachable(
            host,
            shared=resolved.capture_location_shared,
            delivers=bool(resolved.capture_location.url),
        )
    except exceptions.RemoteDriverError as error:
        return warning(SPARK_CONNECTION, error.problem, error.fix), binary, host
    text = f"{conn_id} submits to {master}."
    if host.is_remote:
        text = f"{conn_id} submits to {master}; the driver runs in {host}."
    return passed(SPARK_CONNECTION, text), binary, host


# --- adoption -------------------------------------------------------------------------------------


_MAX_PROBLEMS = 10
PARSING_S = 20.0
"""Limit for parsing DAG files, in seconds: a short time, as workers can run the doctor at start."""


def adoption_checks(resolved: Settings) -> list[Check]:
    """Check the configured rules; DAGs are parsed only if there are rules for their tasks.

    :param resolved: the settings of a task
    """
    rules = adoption_survey.Rules.of(resolved.adopt, resolved.declarations)
    if rules.problems:
        return rules.problems
    if rules.adoption.is_off:
        return [_adoption_is_off(has_declarations=bool(rules.declarations.rules))]
    return [_adoption_is_on(rules), *_adoption_of_dags(rules)]


def _adoption_is_off(*, has_declarations: bool) -> Check:
    if has_declarations:
        text = "There are declarations, and no task is adopted, which they are for."
        fix = "Set [sparklineage] adopt, or take declarations out."
        return warning(adoption_survey.DECLARATIONS, text, fix)
    text = "Adoption is off: tasks have lineage whose DAG asks for it."
    return passed(adoption_survey.ADOPT, text)


def _adoption_is_on(rules: adoption_survey.Rules) -> Check:
    if not airflow_settings.get_policy_plugin_manager().is_registered(adopting):
        text = (
            "Airflow has not loaded this package's cluster policy (entry point airflow.policy): "
            "tasks are adopted only when they are about to run, and have no links."
        )
        fix = "Install the package again, with pip and not from a bare folder."
        return warning(adoption_survey.ADOPT, text, fix)
    what = "Tasks are adopted by rules" if rules.adoption.rules else "All tasks are adopted"
    text = f"{what}: `airflow sparklineage adoption` lists them."
    return passed(adoption_survey.ADOPT, text)


def _adoption_of_dags(rules: adoption_survey.Rules) -> list[Check]:
    if not rules.adoption.rules and not rules.declarations.rules:
        return []
    budget = Deadline().part(PARSING_S)
    parsed = adoption_survey.parse_dags(None, budget=budget, fetches=False)
    if not parsed.is_all:
        text = (
            f"Not all DAG files were parsed: {PARSING_S:.0f} s are for that, and no bundle is "
            "fetched. Whether rules are for tasks, `airflow sparklineage adoption` finds out."
        )
        return [passed(adoption_survey.ADOPT, text)]
    problems = adoption_survey.survey(parsed.dags, rules).problems
    if len(problems) > _MAX_PROBLEMS:
        text = (
            f"{len(problems) - _MAX_PROBLEMS} more rules or globs are for no task, or for one "
            "twice."
        )
        more = warning(adoption_survey.ADOPT, text, "`airflow sparklineage adoption` lists them.")
        return [*problems[:_MAX_PROBLEMS], more]
    return problems


# --- the archive ----------------------------------------------------------------------------------


ARCHIVE, UNSENT = "archive", "unsent events"

_ARCHIVE_EXAMPLE = "s3://aws_default@lineage/tasks"


def archive_checks(resolved: Settings) -> list[Check]:
    """Check whether events are archived, whether the archive can be used, and all were sent.

    :param resolved: the settings of a task
    """
    archive = archive_of(resolved)
    if archive is None:
        return [_without_archive()]
    try:
        unsent = archive.unsent()
    except exceptions.ArchiveError as error:
        return [warning(ARCHIVE, error.problem, error.fix)]
    return [_archive_place(archive), *([_unsent_events(unsent)] if archive.has_marks else [])]


def _without_archive() -> Check:
    try:
        is_wanted = not sources.configuration("archive_url").values
    except exceptions.SettingsError:  # another check says so
        is_wanted = False
    executors = " and ".join(sources.remote_executors())
    if not (is_wanted and executors):
        return passed(ARCHIVE, "Events are kept nowhere: [sparklineage] archive_url.")
    return warning(
        ARCHIVE,
        f"Events are kept nowhere, because {executors} runs tasks on other machines: earlier tries "
        "are not shown, and an event that does not arrive is lost.",
        "Set AIRFLOW__SPARKLINEAGE__ARCHIVE_URL on workers and API servers, e.g. to "
        f"{_ARCHIVE_EXAMPLE}; none is an answer as well.",
    )


def _archive_place(archive: Archive) -> Check:
    if not archive.is_default:
        return passed(ARCHIVE, f"Events are kept in {archive.url}.")
    folder = Path(archive.url.removeprefix("file://"))
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(there, os.W_OK):
        problem = f"Events cannot be kept in {archive.url}: {there} is not writable."
        fix = "Set [sparklineage] archive_url to another place, or to none."
        return warning(ARCHIVE, problem, fix)
    return passed(ARCHIVE, f"Events are kept in {archive.url}, for this user only.")


def _unsent_events(unsent: Sequence[Entry]) -> Check:
    if not unsent:
        return passed(UNSENT, "All events of the archive were sent, as far as known.")
    what = "1 event was" if len(unsent) == 1 else f"{len(unsent)} events were"
    oldest = min((entry.written for entry in unsent if entry.written), default=None)
    since = f", the first on {oldest:%Y-%m-%d at %H:%M} UTC" if oldest else ""
    fix = "Send them when the backend is up: airflow sparklineage resend"
    return warning(UNSENT, f"{what} not sent{since}.", fix)


# --- the history ----------------------------------------------------------------------------------


HISTORY = "history"

_PATIENCE = timedelta(hours=1)
_BUILD = "airflow sparklineage history build"


def history_checks(resolved: Settings) -> list[Check]:
    """Check whether the history can be read, and whether somebody merges what tasks deliver.

    :param resolved: the settings of a task
    :return: no check if there is no place for a history
    """
    if not resolved.history:
        return []
    try:
        store = Store(resolved.history)
        manifest, waiting = store.manifest, incoming.waiting(store)
    except exceptions.HistoryError as error:
        return [warning(HISTORY, error.problem, error.fix)]
    if not manifest.generation:
        text = f"There is no history at {store.url} yet; the page or `{_BUILD}` makes it."
        return [passed(HISTORY, text)]
    since, count = waiting.since, len(waiting.names)
    if since is None or datetime.now(UTC) - since <= _PATIENCE:
        return [passed(HISTORY, f"The history at {store.url} is up to date.")]
    events, are = ("1 event", "is") if count == 1 else (f"{count:,} events", "are")
    problem = (
        f"{events} that tasks delivered to {store.url} since {since:%Y-%m-%d at %H:%M} UTC "
        f"{are} not in the history yet."
    )
    fix = f"Run `{_BUILD} --delivered` every few minutes"
    if resolved.history_merged_by is not HistoryMerger.COMMAND:
        fix += ", or look at the page"
    if resolved.history_merged_by is not HistoryMerger.TASKS:
        fix += ", or set [sparklineage] history_merged_by to tasks"
    return [warning(HISTORY, problem, f"{fix}.")]
