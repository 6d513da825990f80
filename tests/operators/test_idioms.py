"""Code that users write in their own operators finds the same arguments as with the stock operator.

Each idiom runs in a subclass of the stock operator and in the same subclass of ours; afterwards
every argument of the job has the same value, and the idiom has seen the same.
"""

from __future__ import annotations

from copy import deepcopy

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

pytestmark = pytest.mark.airflow

ARGUMENTS = (
    *("conf", "jars", "py_files", "files", "packages", "repositories", "env_vars", "archives"),
    *("properties_file", "application", "application_args", "driver_class_path", "deploy_mode"),
    *("_openlineage_inject_parent_job_info", "_openlineage_inject_transport_info"),
)
GIVEN = {
    "nothing": {},
    "everything": {
        "conf": {
            "spark.jars": "/opt/in-conf.jar",
            "spark.extraListeners": "com.example.Own",
            "spark.executor.cores": "2",
        },
        "py_files": "own.py",
        "env_vars": {"SPARK_SUBMIT_OPTS": "-Dx=1", "STAGE": "test"},
        "application_args": ["--date", "2024-05-06"],
    },
    "empty": {"conf": {}, "env_vars": {}, "application_args": []},
}


def adds_a_property(operator):
    operator.conf["spark.sql.shuffle.partitions"] = "8"


def changes_a_property(operator):
    operator.conf["spark.executor.cores"] = "4"


def takes_a_property_out(operator):
    operator.conf.pop("spark.executor.cores", None)


def makes_new_properties(operator):
    operator.conf = {**operator.conf, "spark.app.name": "own"}


def adds_a_jar(operator):
    operator.jars = ",".join(filter(None, [operator.jars, "/opt/more.jar"]))


def adds_python(operator):
    operator.py_files = ",".join(filter(None, [operator.py_files, "more.py"]))


def adds_to_the_environment(operator):
    operator.env_vars = {**(operator.env_vars or {}), "MORE": "1"}


def replaces_the_arguments(operator):
    operator.application_args = ["--full"]


def iterates_over_all(operator):
    return sorted(operator.conf.items()), [*(operator.env_vars or {})]


def counts_properties(operator):
    return len(operator.conf)


def adds_a_package(operator):
    operator.packages = "com.example:job:1.0"


def sets_an_attribute_of_its_own(operator):
    operator.submitted_conf = dict(operator.conf)
    operator.capture = "mine"


IDIOMS = (
    *(adds_a_property, changes_a_property, takes_a_property_out, makes_new_properties, adds_a_jar),
    *(adds_python, adds_to_the_environment, replaces_the_arguments, iterates_over_all),
    *(counts_properties, adds_a_package, sets_an_attribute_of_its_own),
)


def before_the_job(base, idiom, seen):
    class Own(base):
        def execute(self, context):
            self.conf = self.conf or {}
            seen.append(idiom(self))
            return super().execute(context)

    return Own


def after_the_job(base, idiom, seen):
    class Own(base):
        def execute(self, context):
            result = super().execute(context)
            seen.append(idiom(self))
            return result

    return Own


def after_a_job_that_fails(base, idiom, seen):
    class Own(base):
        def _get_hook(self):
            hook = super()._get_hook()
            hook.submit = lambda *_: 1 / 0
            return hook

        def execute(self, context):
            try:
                return super().execute(context)
            except ZeroDivisionError:
                seen.append(idiom(self))

    return Own


def while_the_job_runs(base, idiom, seen):
    class Own(base):
        def _get_hook(self):
            hook = super()._get_hook()
            submit = hook.submit

            def submitted(application):
                submit(application)
                idiom(self)  # sees the listener, as it is there

            hook.submit = submitted
            return hook

    return Own


WHERE = (before_the_job, after_the_job, after_a_job_that_fails, while_the_job_runs)


def outcome(base, where, idiom, given, execute):
    seen = []
    operator = where(base, idiom, seen)(task_id="revenue", application="job.py", **given)
    result = execute(operator)
    attributes = {name: getattr(operator, name, "absent") for name in ARGUMENTS}
    return {
        "result": result,
        "seen": seen,
        **attributes,
        "capture": getattr(operator, "capture", 0),
    }


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("idiom", IDIOMS)
@pytest.mark.parametrize("where", WHERE)
def test_an_idiom_leaves_the_arguments_as_with_the_stock_operator(
    spark_submit, execute, where, idiom, given
):
    stock = outcome(SparkSubmitOperator, where, idiom, deepcopy(given), execute)
    ours = outcome(SparkLineageSubmitOperator, where, idiom, deepcopy(given), execute)
    assert ours == stock
