"""Code that users write in their own operators finds the same operator as without lineage.

Each idiom runs in a subclass of the stock operator and in the same subclass of ours, before, while
and after a job runs, and after one that failed; afterwards every argument of the job has the same
value, and the idiom has returned or raised the same.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections import OrderedDict, defaultdict
from copy import deepcopy
from types import MappingProxyType

import pytest
from airflow.providers.amazon.aws.operators.emr import (
    EmrAddStepsOperator,
    EmrContainerOperator,
    EmrServerlessStartJobOperator,
)
from airflow.providers.amazon.aws.operators.glue import GlueJobOperator
from airflow.providers.apache.livy.operators.livy import LivyOperator
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_jdbc import SparkJDBCOperator
from airflow.providers.apache.spark.operators.spark_pipelines import SparkPipelinesOperator
from airflow.providers.apache.spark.operators.spark_pyspark import PySparkOperator
from airflow.providers.apache.spark.operators.spark_sql import SparkSqlOperator
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.bases.operator import BaseOperator

from airflow_provider_sparklineage.operators.emr import (
    SparkLineageEmrContainerOperator,
    SparkLineageEmrServerlessOperator,
    SparkLineageEmrStepsOperator,
)
from airflow_provider_sparklineage.operators.glue import SparkLineageGlueOperator
from airflow_provider_sparklineage.operators.lineage_mixin import ARGUMENTS as OF_LINEAGE
from airflow_provider_sparklineage.operators.livy import SparkLineageLivyOperator
from airflow_provider_sparklineage.operators.pyspark import SparkLineagePySparkOperator
from airflow_provider_sparklineage.operators.spark_jdbc import SparkLineageJDBCOperator
from airflow_provider_sparklineage.operators.spark_pipelines import SparkLineagePipelinesOperator
from airflow_provider_sparklineage.operators.spark_sql import SparkLineageSqlOperator
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from tests.conftest import long_after

pytestmark = pytest.mark.airflow

ARGUMENTS = (
    *("conf", "jars", "py_files", "files", "packages", "repositories", "env_vars", "archives"),
    *("properties_file", "application", "application_args", "driver_class_path", "deploy_mode"),
    *("_openlineage_inject_parent_job_info", "_openlineage_inject_transport_info"),
    *("exclude_packages", "name", "keytab", "principal", "op_args", "op_kwargs"),
    *("config_kwargs", "templates_dict", "conn_id"),
)
GIVEN = {
    "nothing": {},
    "everything": {
        "conf": {
            "spark.jars": "/opt/in-conf.jar",
            "spark.extraListeners": "com.example.Own",
            "spark.executor.cores": "2",
        },
        "jars": "/opt/a.jar, /opt/b.jar",
        "py_files": "own.py",
        "env_vars": {"SPARK_SUBMIT_OPTS": "-Dx=1", "STAGE": "test"},
        "application_args": ["--date", "2024-05-06"],
    },
    "empty": {"conf": {}, "env_vars": {}, "application_args": []},
}


# --- properties -----------------------------------------------------------------------------------


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


def updates_properties(operator):
    operator.conf.update({"spark.app.name": "own", "spark.executor.cores": "8"})


def clears_properties(operator):
    operator.conf.clear()


def replaces_all_properties(operator):
    operator.conf = {"spark.app.name": "own"}


def sets_a_default(operator):
    return operator.conf.setdefault("spark.executor.cores", "1")


def merges_properties(operator):
    operator.conf |= {"spark.app.name": "own"}


def deletes_a_property(operator):
    del operator.conf["spark.executor.cores"]


def pops_an_item(operator):
    for key in sorted(operator.conf):
        if key.startswith("spark.executor."):
            operator.conf.pop(key)


def adds_a_listener(operator):
    own = operator.conf.get("spark.extraListeners")
    operator.conf["spark.extraListeners"] = ",".join(filter(None, [own, "com.example.More"]))


def takes_all_listeners_out(operator):
    operator.conf.pop("spark.extraListeners", None)


def sets_the_jars_among_the_properties(operator):
    operator.conf["spark.jars"] = "/opt/other.jar"


def sets_numbers(operator):
    operator.conf["spark.executor.cores"] = 4
    operator.conf["spark.dynamicAllocation.enabled"] = True


def sets_properties_in_order(operator):
    operator.conf = OrderedDict(sorted(operator.conf.items()))


def sets_properties_with_a_default(operator):
    operator.conf = defaultdict(str, operator.conf)


def sets_properties_that_cannot_be_changed(operator):
    operator.conf = MappingProxyType({**operator.conf, "spark.app.name": "own"})


def changes_properties_for_a_while(operator):
    before = operator.conf
    operator.conf = {**before, "spark.app.name": "own"}
    operator.conf = before


def changes_a_copy(operator):
    mine = dict(operator.conf)
    mine["spark.app.name"] = "own"
    return sorted(mine)


def has_an_alias_of_the_properties(operator):
    mine = operator.conf
    mine["spark.app.name"] = "own"
    return mine is operator.conf, operator.conf.get("spark.app.name")


def reads_a_property_that_is_not_there(operator):
    return operator.conf["spark.app.name"]


def reads_its_listeners(operator):
    return operator.conf.get("spark.extraListeners")


def selects_properties(operator):
    return {k: v for k, v in operator.conf.items() if k.startswith("spark.")}


def asks_for_a_property(operator):
    return "spark.openlineage.parentRunId" in operator.conf, bool(operator.conf)


def prints_its_properties(operator):
    operator.log.info("Submitting with %s", operator.conf)
    return [f"--conf {key}={value}" for key, value in operator.conf.items()]


def writes_its_properties_as_json(operator):
    return json.dumps(operator.conf, sort_keys=True)


# --- other arguments ------------------------------------------------------------------------------


def puts_a_jar_first(operator):
    operator.jars = ",".join(filter(None, ["/opt/first.jar", operator.jars]))


def replaces_the_jars(operator):
    operator.jars = "/opt/only.jar"


def takes_the_jars_out(operator):
    operator.jars = None


def takes_a_jar_out(operator):
    kept = [jar for jar in (operator.jars or "").split(",") if jar.strip() != "/opt/b.jar"]
    operator.jars = ",".join(kept) or None


def counts_jars(operator):
    return len((operator.jars or "").split(","))


def replaces_python(operator):
    operator.py_files = "only.zip"


def takes_python_out(operator):
    operator.py_files = None


def reads_python(operator):
    return operator.py_files


def changes_the_environment_in_place(operator):
    if "STAGE" in (operator.env_vars or {}):
        operator.env_vars["STAGE"] = "production"


def takes_from_the_environment(operator):
    return operator.env_vars and operator.env_vars.pop("STAGE", None)


def replaces_the_options_of_java(operator):
    operator.env_vars = {"SPARK_SUBMIT_OPTS": "-Dy=2"}


def empties_the_environment(operator):
    operator.env_vars = {}


def has_no_environment(operator):
    operator.env_vars = None


def reads_the_environment(operator):
    return operator.env_vars


def appends_an_argument(operator):
    operator.application_args = [*(operator.application_args or []), "--more"]


def inserts_an_argument_in_place(operator):
    operator.application_args.insert(0, "--first")


def changes_the_application(operator):
    operator.application = "other.py"


def has_a_properties_file(operator):
    operator.properties_file = None
    return operator.properties_file


def adds_to_the_class_path(operator):
    operator.driver_class_path = "/opt/driver.jar"


def adds_a_file(operator):
    operator.files = ",".join(filter(None, [operator.files, "more.txt"]))


def leaves_packages_out(operator):
    operator.exclude_packages = "com.example:old"


def renames_the_application(operator):
    operator.name = f"{operator.name}-own"


def has_a_principal(operator):
    operator.keytab, operator.principal = "/etc/own.keytab", "own@EXAMPLE.COM"


def injects_no_parent(operator):
    operator._openlineage_inject_parent_job_info = False


def asks_whether_a_transport_is_injected(operator):
    return operator._openlineage_inject_transport_info


def describes_itself(operator):
    before, operator.doc = vars(operator)["doc"], "own"
    return before


def sets_arguments_by_name(operator):
    for name, value in {"files": "own.txt", "py_files": "own.zip"}.items():
        setattr(operator, name, value)


def reads_all_template_fields(operator):
    fields = SparkSubmitOperator.template_fields
    return {name: getattr(operator, name) for name in fields if hasattr(operator, name)}


# --- the operator as a whole ----------------------------------------------------------------------


def copies_itself(operator):
    other = copy.copy(operator)
    other.conf = {**other.conf, "spark.app.name": "own"}
    return other.conf, other.jars, other.task_id


def copies_itself_deeply(operator):
    other = copy.deepcopy(operator)
    other.conf["spark.app.name"] = "own"
    return other.conf, other.jars, other.env_vars


def writes_down_its_attributes(operator):
    state = {name: value for name, value in vars(operator).items() if name != "_hook"}
    return sorted(name for name in json.loads(json.dumps(state, default=repr)) if own_name(name))


def goes_to_another_process(operator):
    state = {k: v for k, v in operator.__getstate__().items() if k != "_hook"}
    state = {k: v for k, v in state.items() if "Backend" not in type(v).__name__}
    return sorted(name for name in pickle.loads(pickle.dumps(state)) if own_name(name))


def own_name(name):
    return "lineage" not in name.replace("openlineage", "")


def compares_itself(operator):
    return operator == copy.copy(operator), operator != object(), len({operator, operator})


def names_itself(operator):
    return repr(operator), str(operator), operator.task_type


def sets_an_attribute_of_its_own(operator):
    operator.submitted_conf = dict(operator.conf)
    operator.capture = "mine"
    return operator.submitted_conf


def uses_names_of_private_things(operator):
    names = ("_try", "_inject", "_is_refused", "_own_arguments", "spark_properties", "capture")
    for name in names:
        setattr(operator, name, f"my {name}")
    return [getattr(operator, name) for name in names]


PROPERTIES = (
    *(adds_a_property, changes_a_property, takes_a_property_out, makes_new_properties),
    *(updates_properties, clears_properties, replaces_all_properties, sets_a_default),
    *(merges_properties, deletes_a_property, pops_an_item, adds_a_listener),
    *(takes_all_listeners_out, sets_the_jars_among_the_properties, sets_numbers),
    *(sets_properties_in_order, sets_properties_with_a_default, changes_properties_for_a_while),
    *(sets_properties_that_cannot_be_changed, changes_a_copy, has_an_alias_of_the_properties),
    *(reads_a_property_that_is_not_there, reads_its_listeners, selects_properties),
    *(asks_for_a_property, prints_its_properties, writes_its_properties_as_json),
    *(iterates_over_all, counts_properties),
)
OTHER_ARGUMENTS = (
    *(adds_a_jar, puts_a_jar_first, replaces_the_jars, takes_the_jars_out, takes_a_jar_out),
    *(counts_jars, adds_python, replaces_python, takes_python_out, reads_python),
    *(adds_to_the_environment, changes_the_environment_in_place, takes_from_the_environment),
    *(replaces_the_options_of_java, empties_the_environment, has_no_environment),
    *(reads_the_environment, replaces_the_arguments, appends_an_argument),
    *(inserts_an_argument_in_place, changes_the_application, has_a_properties_file),
    *(adds_to_the_class_path, adds_a_file, adds_a_package, leaves_packages_out),
    *(renames_the_application, has_a_principal, injects_no_parent),
    *(asks_whether_a_transport_is_injected, describes_itself, sets_arguments_by_name),
    reads_all_template_fields,
)
THE_WHOLE = (
    *(copies_itself, copies_itself_deeply, writes_down_its_attributes, goes_to_another_process),
    *(compares_itself, names_itself, sets_an_attribute_of_its_own, uses_names_of_private_things),
)
IDIOMS = (*PROPERTIES, *OTHER_ARGUMENTS, *THE_WHOLE)


def noted(seen, idiom, operator):
    try:
        seen.append(deepcopy(idiom(operator)))
    except Exception as error:
        seen.append(repr(error))


def before_the_job(base, idiom, seen):
    class Own(base):
        def execute(self, context):
            if hasattr(self, "conf"):
                self.conf = self.conf or {}
            noted(seen, idiom, self)
            return super().execute(context)

    return Own


def after_the_job(base, idiom, seen):
    class Own(base):
        def execute(self, context):
            result = super().execute(context)
            noted(seen, idiom, self)
            return result

    return Own


def when_the_task_has_ended(base, idiom, seen):
    class Own(base):
        def post_execute(self, *_):
            noted(seen, idiom, self)

    return Own


def between_two_jobs(base, idiom, seen):
    class Own(base):
        def execute(self, context):
            super().execute(context)
            noted(seen, idiom, self)
            self._hook = None
            return super().execute(context)

    return Own


def after_a_job_that_fails(base, idiom, seen):
    class Own(base):
        fails = True

        def execute(self, context):
            try:
                return super().execute(context)
            except ZeroDivisionError:
                noted(seen, idiom, self)

    return Own


def while_the_job_runs(base, idiom, _):
    class Own(base):
        def meanwhile(self):
            try:
                idiom(self)  # sees the listener, as it is there
            except Exception:
                self.log.debug("As with the stock operator.")

    return Own


WHERE = (
    *(before_the_job, after_the_job, after_a_job_that_fails, while_the_job_runs),
    *(when_the_task_has_ended, between_two_jobs),
)


@pytest.fixture
def jobs(spark_submit, monkeypatch):
    """Run no job: each does what its operator has to be done meanwhile, or fails."""

    def run(operator):
        getattr(operator, "meanwhile", lambda: None)()
        return 1 / 0 if getattr(operator, "fails", False) else "done"

    get_hook = SparkSubmitOperator._get_hook

    def hook_of(operator):
        hook = get_hook(operator)
        hook._submit_sp = spark_submit  # a process has been started
        hook._operator = operator
        return hook

    monkeypatch.setattr(SparkSubmitOperator, "_get_hook", hook_of)
    monkeypatch.setattr(SparkSubmitHook, "submit", lambda hook, _: run(hook._operator) and None)
    monkeypatch.setattr(PySparkOperator, "execute_callable", run)


def ended(operator, execute, context):
    result = execute(operator, context)
    operator.post_execute(context, result)
    return result


def outcome(base, where, idiom, given, run):
    seen = []
    operator = where(base, idiom, seen)(task_id="revenue", **given)
    result = run(operator)
    attributes = {name: getattr(operator, name, "absent") for name in ARGUMENTS}
    return {
        "result": result,
        "seen": seen,
        **attributes,
        "capture": getattr(operator, "capture", 0),
    }


def test_sixty_idioms_are_compared():
    assert len({*IDIOMS}) >= 60


@pytest.mark.parametrize("given", long_after(1, ["everything", "nothing", "empty"]))
@pytest.mark.parametrize("idiom", IDIOMS)
def test_an_idiom_leaves_the_arguments_as_with_the_stock_operator(
    jobs, execute, context, idiom, given
):
    for where in WHERE:
        ours, stock = (
            outcome(
                base,
                where,
                idiom,
                {"application": "job.py", **deepcopy(GIVEN[given])},
                lambda operator: ended(operator, execute, context),
            )
            for base in (SparkLineageSubmitOperator, SparkSubmitOperator)
        )
        assert ours == stock, where.__name__


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("idiom", [adds_a_property, adds_a_jar, changes_the_environment_in_place])
def test_a_real_process_makes_no_difference(spark_submit, execute, context, idiom, given):
    ours, stock = (
        outcome(
            base,
            after_the_job,
            idiom,
            {"application": "job.py", **deepcopy(given)},
            lambda operator: ended(operator, execute, context),
        )
        for base in (SparkLineageSubmitOperator, SparkSubmitOperator)
    )
    assert ours == stock


# --- classes --------------------------------------------------------------------------------------


def has_a_property_for_an_argument(base):
    class Own(base):
        @property
        def conf(self):
            return self._own_conf

        @conf.setter
        def conf(self, value):
            self._own_conf = {"spark.app.name": "own", **(value or {})}

    return Own


def keeps_watch_over_assignments(base):
    class Own(base):
        def __setattr__(self, name, value):
            if name.startswith("forbidden"):
                raise AttributeError(name)
            super().__setattr__(name, value)

    return Own


def takes_names_of_private_things(base):
    class Own(base):
        _try = "mine"
        spark_properties = None

        def __init__(self, **more):
            super().__init__(**more)
            self.spark_properties = {"spark.app.name": "own"}
            self._inject = {"own": 1}

        def _own_arguments(self):
            raise NotImplementedError

        def _job_running(self):
            raise NotImplementedError

    return Own


def gives_its_own_result(base):
    class Own(base):
        def execute(self, context):
            super().execute(context)
            return {"rows": 3}

    return Own


def tries_a_second_time(base):
    class Own(base):
        fails = True

        def execute(self, context):
            try:
                return super().execute(context)
            except ZeroDivisionError:
                self.fails, self._hook = False, None
                self.conf = {**(self.conf or {}), "spark.executor.memory": "8g"}
                return super().execute(context)

    return Own


def runs_a_job_for_each_day(base):
    class Own(base):
        def execute(self, context):
            for day in ("2024-05-06", "2024-05-07"):
                self._hook, self.application_args = None, ["--date", day]
                self.conf = {**(self.conf or {}), "spark.shop.day": day}
                super().execute(context)

    return Own


CLASSES = (
    *(has_a_property_for_an_argument, keeps_watch_over_assignments, takes_names_of_private_things),
    *(gives_its_own_result, tries_a_second_time, runs_a_job_for_each_day),
)


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("of_class", CLASSES)
def test_a_class_of_the_users_behaves_as_with_the_stock_operator(
    jobs, execute, context, of_class, given
):
    ours, stock = (
        outcome(
            of_class(base),
            after_the_job,
            reads_all_template_fields,
            {"application": "job.py", **deepcopy(given)},
            lambda operator: ended(operator, execute, context),
        )
        for base in (SparkLineageSubmitOperator, SparkSubmitOperator)
    )
    assert ours == stock


# --- PySpark --------------------------------------------------------------------------------------


def sets_an_argument_of_the_function(operator):
    operator.op_kwargs = {**operator.op_kwargs, "day": "2024-05-06"}


def changes_an_argument_in_place(operator):
    operator.op_kwargs["day"] = "2024-05-07"


def appends_a_positional_argument(operator):
    operator.op_args = [*operator.op_args, "more"]


def sets_a_property_of_the_session(operator):
    operator.config_kwargs["spark.app.name"] = "own"


def replaces_the_properties_of_the_session(operator):
    operator.config_kwargs = {"spark.executor.cores": "2"}


def reads_the_properties_of_the_session(operator):
    return sorted(operator.config_kwargs.items())


def uses_templates_of_its_own(operator):
    operator.templates_dict = {"day": "2024-05-06"}


def reads_its_function(operator):
    return operator.python_callable.__name__, operator.op_args, sorted(operator.op_kwargs)


PYSPARK = (
    *(sets_an_argument_of_the_function, changes_an_argument_in_place, uses_templates_of_its_own),
    *(appends_a_positional_argument, sets_a_property_of_the_session, reads_its_function),
    *(replaces_the_properties_of_the_session, reads_the_properties_of_the_session),
    *(describes_itself, writes_down_its_attributes, compares_itself, names_itself),
    uses_names_of_private_things,
)


def job(*days, spark, **more):
    raise NotImplementedError


SEVERAL = {"op_args": ["a"], "op_kwargs": {"day": 1}, "config_kwargs": {"spark.app.name": "a"}}


@pytest.mark.parametrize(
    "given", [SEVERAL, pytest.param({}, marks=pytest.mark.long)], ids=["several", "nothing"]
)
@pytest.mark.parametrize("idiom", PYSPARK)
def test_an_idiom_leaves_the_arguments_as_with_the_stock_pyspark_operator(
    jobs, execute, context, idiom, given
):
    for where in WHERE:
        ours, stock = (
            outcome(
                base,
                where,
                idiom,
                {"python_callable": job, **deepcopy(given)},
                lambda operator: ended(operator, execute, context),
            )
            for base in (SparkLineagePySparkOperator, PySparkOperator)
        )
        assert ours == stock, where.__name__


# --- names ----------------------------------------------------------------------------------------

WITHOUT_LINEAGE = {"is_adopted", "follow_rendering", "__slots__"}
"""Names that were there before the rule, and that adoption knows; and the one of Python that stock
operators lack from Python 3.12 on, where ``typing.Generic`` has no ``__slots__``."""


@pytest.mark.parametrize(
    ("ours", "stock"),
    [
        (SparkLineageSubmitOperator, SparkSubmitOperator),
        (SparkLineagePySparkOperator, PySparkOperator),
        (SparkLineageSqlOperator, SparkSqlOperator),
        (SparkLineageJDBCOperator, SparkJDBCOperator),
        (SparkLineagePipelinesOperator, SparkPipelinesOperator),
        (SparkLineageLivyOperator, LivyOperator),
        (SparkLineageEmrServerlessOperator, EmrServerlessStartJobOperator),
        (SparkLineageEmrContainerOperator, EmrContainerOperator),
        (SparkLineageEmrStepsOperator, EmrAddStepsOperator),
        (SparkLineageGlueOperator, GlueJobOperator),
    ],
)
def test_what_is_no_argument_has_lineage_in_its_name(ours, stock):
    added = {*dir(ours)} - {*dir(stock)} - {*OF_LINEAGE} - WITHOUT_LINEAGE
    assert {name for name in added if "lineage" not in name and "_convert_" not in name} == set()


def test_all_that_a_running_task_has_more_is_one_attribute(jobs, execute, context):
    ours, stock = (
        base(task_id="revenue", application="job.py")
        for base in (SparkLineageSubmitOperator, SparkSubmitOperator)
    )
    for operator in (ours, stock):
        ended(operator, execute, context)
    assert isinstance(ours, BaseOperator)
    assert vars(ours).keys() - vars(stock).keys() == {"_lineage_try"}
