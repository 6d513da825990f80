"""SparkSqlOperator: the worker runs ``spark-sql``, whose driver is a JVM without Python.

The operator passes properties as ``--conf`` and nothing else that matters here: no jars, no
properties file and no environment. So the listener's jar goes into ``spark.jars``, and a transport
with a secret is left out. ``conf`` may be one text, ``a=b,c=d``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
from airflow_provider_sparklineage.spark.submit.submission import Submission, as_texts

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

_BINARY = "spark-sql"


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:  # noqa: ARG001  (of an adapter)
    """Read the operator's properties, and the master of its connection.

    :raise ListenerError: if ``conf`` is a text that is no list of properties
    """
    hook = operator._get_hook()  # noqa: SLF001  (nothing else knows the master)
    target = Target(
        _BINARY,
        hook._master or "",  # noqa: SLF001
        has_properties_file=False,
        passes_environment=False,
    )
    return [Submission(conf=properties(operator), application=_BINARY)], target


def write(operator: Any, submissions: list[Submission]) -> None:
    """Set the properties, the listener's jar among them."""
    [submission] = submissions
    jars = {"spark.jars": submission.jars} if submission.jars else {}
    operator._hook = None  # noqa: SLF001  (it has the properties without the listener)
    operator._conf = {**submission.conf, **jars}  # noqa: SLF001


def properties(operator: Any) -> dict[str, str]:
    """Give the operator's own properties.

    :raise ListenerError: if ``conf`` is a text that is no list of properties
    """
    conf = operator._conf or {}  # noqa: SLF001
    if isinstance(conf, str):
        pairs = [entry.partition("=") for entry in conf.split(",")]
        if not all(equals for _, equals, _ in pairs):
            problem = "`conf` of the task is a text with a comma that does not part properties."
            raise ListenerError(problem, "Give it as a dict.")
        return {key: value for key, _, value in pairs}
    return as_texts(conf)
