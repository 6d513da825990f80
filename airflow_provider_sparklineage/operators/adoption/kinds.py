"""Recognise Airflow's operators for Spark by the paths of their classes, without imports."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar
from weakref import ref

T = TypeVar("T")


class ByClass(Generic[T]):
    """Values by class, each kept as long as its class lives.

    A class is found by its identity: a user's metaclass may take other classes for equal, and the
    metaclass of an adopted class does.
    """

    def __init__(self) -> None:
        self._values: dict[int, tuple[ref[type], T]] = {}

    def get(self, cls: type) -> T | None:
        """Give the value of a class; None if it has none."""
        found = self._values.get(id(cls))
        return None if found is None else found[1]

    def put(self, cls: type, value: T) -> T:
        """Set the value of a class, and give it back."""
        key = id(cls)
        self._values[key] = ref(cls, lambda _: self._values.pop(key, None)), value
        return value


class Kind(NamedTuple):
    """A stock operator that runs Spark, and the operator that runs the same job with lineage.

    :param stock: path of the stock class that starts Spark
    :param ours: path of the operator that has lineage
    :param methods: methods of the stock class that the operator with lineage overrides
    :param replaced: attributes that are reset when the listener is injected, so that the stock
        class makes them anew
    :param may_defer: whether a task keeps its lineage while it waits in the triggerer
    """

    stock: str
    ours: str
    methods: tuple[str, ...]
    replaced: tuple[str, ...] = ()
    may_defer: bool = False

    def own_classes(self, cls: type) -> tuple[type, ...]:
        """Give the classes before the stock class in the method resolution order of ``cls``."""
        paths = [path(each) for each in cls.__mro__]
        return cls.__mro__[: paths.index(self.stock)]


_AMAZON = "airflow.providers.amazon.aws.operators"
_DATAPROC = "airflow.providers.google.cloud.operators.dataproc"

KINDS = (
    Kind(  # before SparkSubmitOperator, from which it inherits
        "airflow.providers.apache.spark.operators.spark_jdbc.SparkJDBCOperator",
        "airflow_provider_sparklineage.operators.spark_jdbc.SparkLineageJDBCOperator",
        ("execute",),
        ("_hook",),
    ),
    Kind(
        "airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator",
        "airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator",
        ("execute",),
        ("_hook",),  # has the submission without the listener
    ),
    Kind(
        "airflow.providers.apache.spark.operators.spark_pyspark.PySparkOperator",
        "airflow_provider_sparklineage.operators.pyspark.SparkLineagePySparkOperator",
        ("execute",),
    ),
    Kind(
        "airflow.providers.apache.spark.operators.spark_sql.SparkSqlOperator",
        "airflow_provider_sparklineage.operators.spark_sql.SparkLineageSqlOperator",
        ("execute",),
        ("_hook",),
    ),
    Kind(
        "airflow.providers.apache.spark.operators.spark_pipelines.SparkPipelinesOperator",
        "airflow_provider_sparklineage.operators.spark_pipelines.SparkLineagePipelinesOperator",
        ("execute",),
        ("hook",),
    ),
    Kind(
        "airflow.providers.apache.livy.operators.livy.LivyOperator",
        "airflow_provider_sparklineage.operators.livy.SparkLineageLivyOperator",
        ("execute", "resume_execution"),
        may_defer=True,
    ),
    Kind(
        "airflow.providers.cncf.kubernetes.operators.spark_kubernetes.SparkKubernetesOperator",
        "airflow_provider_sparklineage.operators.spark_kubernetes.SparkLineageKubernetesOperator",
        ("execute", "resume_execution", "post_complete_action"),
        may_defer=True,
    ),
    Kind(
        f"{_DATAPROC}.DataprocSubmitJobOperator",
        "airflow_provider_sparklineage.operators.dataproc.SparkLineageDataprocSubmitOperator",
        ("execute", "resume_execution"),
        may_defer=True,
    ),
    Kind(
        f"{_DATAPROC}.DataprocCreateBatchOperator",
        "airflow_provider_sparklineage.operators.dataproc.SparkLineageDataprocBatchOperator",
        ("execute", "resume_execution"),
        may_defer=True,
    ),
    Kind(
        f"{_DATAPROC}.DataprocInstantiateInlineWorkflowTemplateOperator",
        "airflow_provider_sparklineage.operators.dataproc.SparkLineageDataprocWorkflowOperator",
        ("execute", "resume_execution"),
        may_defer=True,
    ),
    Kind(
        f"{_AMAZON}.emr.EmrServerlessStartJobOperator",
        "airflow_provider_sparklineage.operators.emr.SparkLineageEmrServerlessOperator",
        ("execute", "resume_execution"),
        may_defer=True,
    ),
    Kind(
        f"{_AMAZON}.emr.EmrContainerOperator",
        "airflow_provider_sparklineage.operators.emr.SparkLineageEmrContainerOperator",
        ("execute", "resume_execution"),
        may_defer=True,
    ),
    Kind(
        f"{_AMAZON}.emr.EmrAddStepsOperator",
        "airflow_provider_sparklineage.operators.emr.SparkLineageEmrStepsOperator",
        ("execute", "resume_execution"),
        may_defer=True,
    ),
    Kind(
        f"{_AMAZON}.glue.GlueJobOperator",
        "airflow_provider_sparklineage.operators.glue.SparkLineageGlueOperator",
        ("execute", "resume_execution"),
        may_defer=True,
    ),
    Kind(
        "airflow.providers.databricks.operators.databricks.DatabricksSubmitRunOperator",
        "airflow_provider_sparklineage.operators.databricks.SparkLineageDatabricksOperator",
        ("execute", "resume_execution"),
        may_defer=True,
    ),
    Kind(
        "airflow.providers.microsoft.azure.operators.synapse.AzureSynapseRunSparkBatchOperator",
        "airflow_provider_sparklineage.operators.synapse.SparkLineageSynapseOperator",
        ("execute",),
    ),
)
_MAPPED = "airflow.sdk.definitions.mappedoperator.MappedOperator"


class Facts(NamedTuple):
    """The facts about a class of tasks.

    :param kind: the kind of the stock operator; None for operators that run no Spark
    :param is_mapped: whether the tasks are mapped: the class that such a task will run is in its
        attribute ``operator_class``
    """

    kind: Kind | None
    is_mapped: bool


_known = ByClass[Facts]()


def path(cls: type) -> str:
    """Give the path of a class: its module, a dot, and its qualified name."""
    return f"{_own(cls, '__module__')}.{_own(cls, '__qualname__')}"


def _own(cls: type, name: str) -> Any:
    """Give an attribute that every class has; a metaclass of the user's could raise for it."""
    return vars(type)[name].__get__(cls)


def kind_of(task: Any) -> tuple[type, Kind | None]:
    """Give the class that a task will run, and its kind; the kind is None if it runs no Spark."""
    cls = type(task)
    facts = _facts(cls)
    if facts.is_mapped:
        cls = task.operator_class
        facts = _facts(cls)
    return cls, facts.kind


def _facts(cls: type) -> Facts:
    facts = _known.get(cls)
    if facts is None:
        paths = {path(each) for each in _own(cls, "__mro__")}
        kind = next((kind for kind in KINDS if kind.stock in paths), None)
        facts = _known.put(cls, Facts(kind, _MAPPED in paths))
    return facts


def described(error: BaseException) -> str:
    """Give the type of an exception and its text, which the code of a user may fail to give."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:
        return type(error).__name__
