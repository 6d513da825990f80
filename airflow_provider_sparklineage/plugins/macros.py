"""The macros of this package for templates and callbacks: ``macros.sparklineage.…``.

The macros give links to a task's lineage, and arguments for a spark-submit in a command of the
user's own.

Every Airflow process imports this module, so the modules that a macro needs are imported when the
macro is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinja2 import pass_context  # Airflow has it, in all processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2.runtime import Context


def lineage_job_url(task_instance: Any) -> str:
    """Give the URL of the lineage backend's page on a task's job; empty if there is no page.

    :param task_instance: ``ti`` of the context, of a task with Spark lineage
    """
    from airflow_provider_sparklineage.links.lineage import job_page

    return job_page(task_instance.task, task_instance)


def output_columns_url(task_instance: Any, output: str | None = None) -> str:
    """Give the URL of the page that draws an output's columns; empty if there is no page.

    :param task_instance: ``ti`` of the context, of a task with Spark lineage
    :param output: name of the output's dataset; None for the first by name that has a page
    """
    from airflow_provider_sparklineage.links.lineage import columns_page

    return columns_page(task_instance.task, output)


@pass_context
def submit_args(
    context: Context,
    *,
    jars: str | Sequence[str] = "",
    packages: str | Sequence[str] = "",
    py_files: str | Sequence[str] = "",
    conf: Mapping[str, object] | None = None,
    properties_file: str | None = None,
    application: str = "",
    master: str = "",
    deploy_mode: str = "",
    elsewhere: bool = False,
    lineage_conn_id: str | None = None,
) -> str:
    """Give the arguments by which a spark-submit in a command reports its lineage.

    ``spark-submit {{ macros.sparklineage.submit_args(jars="/jars/own.jar") }} job.py``

    The answer includes the arguments that are passed to this macro, so leave them out of the
    command: Spark takes each argument only once. The exceptions are master and deploy mode, which
    the answer does not include.

    :param context: Jinja passes it; a template does not
    :param jars: ``--jars`` of the job
    :param packages: ``--packages`` of the job
    :param py_files: ``--py-files`` of the job
    :param conf: properties of the job; ``spark.extraListeners`` and the properties of OpenLineage
        matter here
    :param properties_file: ``--properties-file`` of the job
    :param application: the submitted file, if the command does not show it; partitions are observed
        only for a Python file
    :param master: the ``--master`` of the command, if the command does not show it
    :param deploy_mode: the ``--deploy-mode`` of the command, if the command does not show it
    :param elsewhere: whether the command runs on another machine, or in a container
    :param lineage_conn_id: connection of type ``sparklineage`` with settings
    """
    from airflow_provider_sparklineage.operators import submit_arguments
    from airflow_provider_sparklineage.spark.submit.submission import Submission, as_texts

    submission = Submission(
        conf=as_texts(conf),
        jars=_listed(jars),
        packages=_listed(packages),
        py_files=_listed(py_files),
        application=application,
        properties_file=properties_file,
    )
    call = submit_arguments.MacroCall(
        "submit_args", submission, master, deploy_mode, elsewhere, lineage_conn_id
    )
    return submit_arguments.arguments(_of_task(context), call)


@pass_context
def spark_conf_dir(
    context: Context,
    *,
    application: str = "",
    master: str = "",
    deploy_mode: str = "",
    lineage_conn_id: str | None = None,
) -> str:
    """Give a ``SPARK_CONF_DIR`` by which each spark-submit of a command reports its lineage.

    The folder has the files of the user's own configuration folder, and more properties in
    ``spark-defaults.conf``. Arguments of the command win over these properties. The parameters are
    the same as in :func:`submit_args`.
    """
    from airflow_provider_sparklineage.operators import submit_arguments
    from airflow_provider_sparklineage.spark.submit.submission import Submission

    call = submit_arguments.MacroCall(
        "spark_conf_dir",
        Submission(application=application),
        master,
        deploy_mode,
        lineage_conn_id=lineage_conn_id,
    )
    return submit_arguments.conf_dir(_of_task(context), call)


def _of_task(context: Context) -> Any:
    """Give Airflow's context of the task, as a dict.

    :param context: Jinja's context of the template that calls the macro; its variables are the
        entries of Airflow's context
    """
    return context.get_all()


def _listed(given: str | Sequence[str]) -> str | None:
    return (given if isinstance(given, str) else ",".join(given)) or None


MACROS = [lineage_job_url, output_columns_url, submit_args, spark_conf_dir]
