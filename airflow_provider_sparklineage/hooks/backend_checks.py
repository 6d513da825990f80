"""Check the backends that get lineage or show it, without storing anything there.

The checks of Marquez are in :mod:`airflow_provider_sparklineage.event.backends.checks`, those of
DataHub here: whether proposals can be sent to its server.

DataHub's path ``/config``, which needs no token, shows whether the server is DataHub, and the
server's version. Then the check sends a proposal of an aspect that does not exist. GMS first checks
the token (401), then whether the token's user may change a dataset (403,
``AspectResource.ingestProposals``), and only then the aspect. GMS refuses the aspect by name before
it stores anything.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from airflow_provider_sparklineage.datahub import configuration
from airflow_provider_sparklineage.datahub.proposals import Proposal, stored
from airflow_provider_sparklineage.event.backends import checks
from airflow_provider_sparklineage.event.model import Value, fitted
from airflow_provider_sparklineage.model.exceptions import BackendError, SparkLineageError
from airflow_provider_sparklineage.settings.checks import Check, Status, UrlPlace, failed
from airflow_provider_sparklineage.settings.connection import DATAHUB_TYPES, api_url, transports_of
from airflow_provider_sparklineage.settings.option_kinds import BackendName

if TYPE_CHECKING:
    from collections.abc import Mapping


_KEY_OF_CONNECTION = "airflow_connection_api_key"
TRANSPORT, SERVER, WRITE = "DataHub, transport", "DataHub, server", "DataHub, write"

PORT = "DataHub's server, GMS, listens at port 8080"
_PATH = "/aspects?action=ingestProposalBatch"
_DATASET = "urn:li:dataset:(urn:li:dataPlatform:spark,sparklineage.doctor,PROD)"
_ASPECT = "sparkLineageDoctor"
_PROTOCOL = ("X-RestLi-Protocol-Version", "2.0.0")


def backend_checks(
    endpoint: checks.Endpoint | None, backend: BackendName, transport: Mapping[str, Any], place: str
) -> list[Check]:
    """Check the backend that shows lineage, and each DataHub that lineage is sent to.

    :param endpoint: the API and pages of the backend that shows lineage; None if they are not known
    :param backend: the kind of that backend
    :param transport: the configured transport, which may be composed of other transports
    :param place: the place of the transport in the configuration, in words
    """
    to_datahub = list(transports_of(DATAHUB_TYPES, transport))
    servers = {api_url(str(one.get("server") or "")) for _, one in to_datahub}
    results: list[Check] = []
    if endpoint is not None and endpoint.url in servers:
        results += _checked_pages(endpoint, backend)
    elif endpoint is not None and backend is BackendName.DATAHUB:
        results += check(replace(endpoint, port=PORT))
    elif endpoint is not None:
        results += checks.check(endpoint, is_marquez=backend is BackendName.MARQUEZ)
    for path, one in to_datahub:
        results += check_transport(one, path, place)
    return results


def _checked_pages(endpoint: checks.Endpoint, backend: BackendName) -> list[Check]:
    """Check only the pages of a DataHub; its API is checked with the transport that sends to it.

    :param endpoint: the API and pages of that DataHub
    :param backend: the configured backend; if it is not ``datahub``, the result is a warning
    :return: [] if no URL of pages is configured
    """
    if not endpoint.web_url:
        return []
    if backend is BackendName.DATAHUB:
        return [checks.checked_web(endpoint)]
    message = f"Lineage is sent to DataHub, and links at {endpoint.web_url} are those of {backend}."
    fix = "Set [sparklineage] backend to datahub; the same is sent to DataHub."
    return [Check(checks.WEB, Status.WARNING, message, fix)]


def with_key(transport: Any, key: str | None) -> Any:
    """Put a connection's key into each part of its transport that refers to the connection's key.

    When Airflow sends events, Airflow itself finds the key, by the connection's id. A connection
    that is being tested is still in a form and has no id.

    :param transport: a transport, or any value in one
    :return: a new transport; it equals the given one if ``key`` is None
    """
    if isinstance(transport, list):
        return [with_key(part, key) for part in transport]
    if not isinstance(transport, dict):
        return transport
    if key and transport.get("type") == _KEY_OF_CONNECTION and not transport.get("conn_id"):
        return {"type": "api_key", "apiKey": key}
    return {name: with_key(part, key) for name, part in transport.items()}


# --- DataHub --------------------------------------------------------------------------------------


def check_transport(transport: Mapping[str, Any], path: str, place: str) -> list[Check]:
    """Check a transport to DataHub: its configuration, and the server that it sends to.

    :param transport: the transport's configuration
    :param path: the path of the transport within ``place``, e.g. ``transport``
    :param place: the place of the configuration in words, e.g. ``Airflow's [openlineage]``
    """
    try:
        target = configuration.read(transport)
        bearer = target.server and target.server.bearer()
    except SparkLineageError as error:
        return [failed(TRANSPORT, error)]
    except Exception as error:  # any: the provider of tokens is others' code
        problem = f"{path}.auth in {place} gives no token ({type(error).__name__})."
        fix = "Check the arguments that this provider of tokens needs."
        return [failed(TRANSPORT, problem, fix)]
    if target.server is None:
        text = f"Proposals for DataHub are written to {target.folder}, and not sent."
        return [Check(TRANSPORT, Status.OK, text)]
    headers = target.server.headers
    if bearer:
        headers = (*headers, ("Authorization", bearer))
    key = "auth" if transport.get("auth") else "token"
    endpoint = checks.Endpoint(
        target.server.url,
        verify=target.server.verify,
        timeout=min(target.server.timeout, checks.TIMEOUT_S),
        place=UrlPlace(f"{path}.server in {place}", f"{path}.{key} in {place}"),
        port=PORT,
        headers=headers,
        cert=target.server.cert,
    )
    return check(endpoint)


def check(endpoint: checks.Endpoint) -> list[Check]:
    """Check the server, the sending of proposals, and the web pages if they have a URL.

    No proposal is sent to a server that is not DataHub: it might store the proposal.
    """
    return checks.checked(endpoint, (SERVER, _checked_server), (WRITE, _checked_write))


def _checked_server(endpoint: checks.Endpoint) -> Check:
    answer = checks.backend_answer(endpoint, "GET", "/config")
    config = fitted(checks.document_of(answer), _GmsConfig)
    # The SDK recognizes GMS by `noCode`, which the server of the web pages does not have.
    if answer.status != 200 or config.noCode != "true":
        other = f"{answer.status}, and not as DataHub's GMS"
        how = "with a web page" if checks.is_html(answer) else other
        problem = f"{endpoint.url}/config answers {how}: nothing can be stored there."
        fix = (
            f"Give the URL of GMS in {endpoint.place.name('host', 'port')}: {PORT}, and the "
            "server of the pages (9002) has it below /api/gms."
        )
        raise BackendError(problem, fix)
    version = stored(config.versions.get("acryldata/datahub", _GmsVersion()).version, 40)
    text = f"DataHub {version}".strip() + f" answers at {endpoint.url}."
    # DataHub Cloud has version numbers of its own.
    if _OLD.match(version) and config.datahub.get("serverEnv") in (None, "", "core"):
        return Check(SERVER, Status.WARNING, f"{text} {_REFUSES}", _NEWER)
    return Check(SERVER, Status.OK, text)


class _GmsVersion(Struct):
    version: str = ""


class _GmsConfig(Struct):
    """The answer of GMS at ``/config``."""

    noCode: str = ""  # noqa: N815
    versions: dict[str, _GmsVersion] = {}
    datahub: dict[str, Value] = {}


_OLD = re.compile(r"v?0\.")
_REFUSES = "Before 1.0 it refuses the datasets of a run."
_NEWER = "Upgrade DataHub to 1.0 or newer."


def _checked_write(endpoint: checks.Endpoint) -> Check:
    with_protocol = replace(endpoint, headers=(*endpoint.headers, _PROTOCOL))
    # No DataHub stores this proposal, which has the form of real ones.
    proposals = [Proposal(_DATASET, _ASPECT, {}).request()]
    answer = checks.ask(with_protocol, "POST", _PATH, {"proposals": proposals, "async": "false"})
    if answer.status == 403 and _DATASET.encode() in answer.body:
        problem = f"The user of the token in {endpoint.place.key} may not change datasets (403)."
        fix = (
            "Give that user of DataHub the privilege Edit Entity for datasets, tasks, pipelines "
            "and their runs, e.g. by a policy, or the role Editor."
        )
        raise BackendError(problem, fix)
    checks.refuse_other_servers(endpoint, answer, endpoint.url + _PATH)
    # GMS refuses the aspect with 422, 400 or 500 and the aspect's name; some versions of GMS leave
    # the aspect out and answer 200.
    if answer.status == 200 or _ASPECT.encode() in answer.body:
        text = "It takes proposals; one of an unknown aspect was refused, as it should be."
        return Check(WRITE, Status.OK, text)
    problem = (
        f"{endpoint.url}{_PATH} answers {answer.status} to a proposal, and not as DataHub's GMS."
    )
    fix = "Look at the proxies between this machine and GMS: one of them may let no POST through."
    raise BackendError(problem, fix)
