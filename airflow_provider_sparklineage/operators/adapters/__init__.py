"""Adapters: one module for each way in which an operator of Airflow starts Spark.

An adapter translates between an operator and the values that injection works with. ``read`` gives
the operator's submissions and their target: who starts the drivers, and what is known of its Spark.
``write`` puts submissions with the listener into the operator's arguments. Most operators have one
submission. A task with several steps has one for each step that starts Spark, and its event has all
of them. An adapter decides nothing else: where a driver's reports come back, which jar is used and
what must not be shown is decided in :mod:`airflow_provider_sparklineage.spark.submit`, for all.

To add a service, write its module here; a mixin and an operator in ``operators.<service>`` that
name it as ``lineage_adapter``, with the fields that are traced and those that ``write`` changes;
and its kind in :mod:`airflow_provider_sparklineage.operators.adoption.kinds`. The provider of the
service is imported by the operator's module alone, which nobody imports without using it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from airflow.providers.common.compat.openlineage.utils.spark import (
    inject_transport_information_into_spark_properties,
)
from airflow.providers.common.compat.sdk import conf

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.spark.submit.submission import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
    from airflow_provider_sparklineage.spark.submit.submission import Submission

T = TypeVar("T")

log = logger(__name__)


class Adapter(Protocol):
    """The functions of an adapter's module."""

    def read(self, operator: Any, context: Context) -> tuple[list[Submission], Target]:
        """Read the submissions from the operator's rendered arguments.

        :return: at least one submission, and the place to which all of them go
        :raise SparkLineageError: if the arguments have another form than the service takes, or
            start no Spark
        """

    def write(self, operator: Any, submissions: list[Submission]) -> None:
        """Replace the operator's arguments by those of submissions that :meth:`read` gave.

        Containers are replaced and not changed: the operator may share them with the DAG.

        :param submissions: as many as :meth:`read` gave, in the same order
        """


class ForTrial(Adapter, Protocol):
    """An adapter of a service to which a trial can be submitted with a task's own arguments.

    A service has none if its application is not among the operator's arguments: the script of an
    AWS Glue job, for example, is a part of the job.
    """

    def replace_application(self, operator: Any, application: str, arguments: list[str]) -> None:
        """Let the operator run a Python application once, in place of the task's applications.

        Containers are replaced and not changed, as by :meth:`~Adapter.write`. A name or id of the
        job that no other job may have is removed, and a number of executors that would win over the
        property of Spark is reduced to one.

        :param application: the application's URL, as Spark knows it
        :param arguments: the application's arguments
        """


TRANSPORT_FLAG = "openlineage_inject_transport_info"
"""The attribute of operators by which Airflow gives its own transport to Spark."""


def adapter(name: str) -> Adapter:
    """Import the adapter of a name, which is that of its module."""
    return cast("Adapter", import_module(f"{__name__}.{name}"))


# Services take lists of files as lists, and properties of any type.


def text_of(entries: Iterable[object] | str | None) -> str | None:
    """Give a list of files as the text that spark-submit would get; None if it is empty."""
    return ",".join([entries] if isinstance(entries, str) else map(str, entries or ())) or None


def with_entries(own: Any, text: str | None) -> Any:
    """Give a list of files with those entries of a text that it does not have.

    :param own: the operator's own list, which is given back if nothing is added to it
    """
    known = listed(text_of(own))
    added = [entry for entry in listed(text) if entry not in known]
    return [*([own] if isinstance(own, str) else own or ()), *added] if added else own


def with_properties(own: Mapping[str, Any] | None, submission: Submission) -> dict[str, Any]:
    """Give the properties of a submission; one that was not changed keeps the operator's type."""
    own = own or {}
    return {
        key: own[key] if key in own and str(own[key]) == value else value
        for key, value in submission.conf.items()
    }


def looked_up(ask: Callable[[], T]) -> T | None:
    """Ask a service about the place to which a job is submitted; None if the answer is an error.

    :param ask: sends the request; the worker may lack the permission for it
    """
    try:
        return ask()
    except Exception:
        log.debug("The service did not say what was asked.", exc_info=True)
        return None


# If `openlineage_inject_transport_info` asks for it, Spark gets Airflow's own transport. The stock
# operator would pass the transport by `--conf`, where every user of the machine can read its key.
# So the functions below take the transport from the provider and correct it; it is then passed on
# like a transport of the user's.


def airflow_transport(operator: Any, flag: str, context: Context) -> dict[str, str]:
    """Give the Spark properties of Airflow's transport, and keep the operator from injecting them.

    :param flag: the operator's attribute for ``openlineage_inject_transport_info``; it is switched
        off until the operator's execution has ended
    :return: the properties; ``{}`` if the flag was off already
    """
    if not getattr(operator, flag, False):
        return {}
    setattr(operator, flag, False)
    return _provided_transport(context)


def configured_transport(context: Context) -> dict[str, str]:
    """Give the Spark properties of Airflow's transport, for an operator that has no such flag.

    :return: the properties; ``{}`` unless ``[openlineage] spark_inject_transport_info`` is true
    """
    if not conf.getboolean("openlineage", "spark_inject_transport_info", fallback=False):
        return {}
    return _provided_transport(context)


def _provided_transport(context: Context) -> dict[str, str]:
    provided: Mapping[str, Any] = inject_transport_information_into_spark_properties({}, context)
    return corrected_transport(provided)


def corrected_transport(properties: Mapping[str, Any]) -> dict[str, str]:
    """Correct those properties which Airflow's provider makes and the listener would misread.

    The listener puts ``Bearer`` before a key itself, so that prefix is removed. The provider
    truncates a timeout below a second to 0, which the listener takes as no time at all, so a
    timeout of 0 is left out.

    :return: all properties as texts, except those without a value
    """
    corrected = {}
    for key, value in properties.items():
        if value is None or (key.endswith(".timeoutInMillis") and str(value) == "0"):
            continue
        corrected[key] = str(value)
        if key.endswith(".auth.apiKey"):
            corrected[key] = corrected[key].removeprefix("Bearer ")
    return corrected
