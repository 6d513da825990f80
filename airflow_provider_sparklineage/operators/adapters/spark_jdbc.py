"""SparkJDBCOperator: the worker runs spark-submit, with a Python script of Airflow's provider.

The operator's hook has all of the submission, and the operator hands it over no other way: it
ignores the attributes that it inherits from SparkSubmitOperator. So the submission is read from a
new hook and written to one. The script's own arguments, of which one is the password of the
database, are left to the hook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.operators.adapters import airflow_transport
from airflow_provider_sparklineage.operators.adapters.spark_submit import (
    TRANSPORT_FLAG,
    target_of,
)
from airflow_provider_sparklineage.spark.submit.submission import Submission, as_texts

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.spark.submit.deploy_mode import Target

_SCRIPT = "spark_jdbc_script.py"


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:
    """Read what the operator's hook would submit."""
    hook = operator._get_hook()  # noqa: SLF001  (nothing else has the submission)
    submission = Submission(
        conf=as_texts(hook._conf),  # noqa: SLF001
        jars=hook._jars,  # noqa: SLF001
        packages=hook._packages,  # noqa: SLF001
        driver_class_path=hook._driver_class_path,  # noqa: SLF001
        py_files=hook._py_files,  # noqa: SLF001
        application=_SCRIPT,
        env_vars=dict(hook._env_vars or {}),  # noqa: SLF001
        properties_file=hook._properties_file,  # noqa: SLF001
    )
    transport = airflow_transport(operator, TRANSPORT_FLAG, context)
    return [submission], target_of(hook)._replace(transport=transport)


def write(operator: Any, submissions: list[Submission]) -> None:
    """Give the operator a hook with the submission."""
    [submission] = submissions
    hook = operator._hook = operator._get_hook()  # noqa: SLF001
    hook._conf = dict(submission.conf)  # noqa: SLF001
    hook._jars = submission.jars  # noqa: SLF001
    hook._py_files = submission.py_files  # noqa: SLF001
    hook._env_vars = dict(submission.env_vars) or hook._env_vars  # noqa: SLF001
    hook._properties_file = submission.properties_file  # noqa: SLF001
