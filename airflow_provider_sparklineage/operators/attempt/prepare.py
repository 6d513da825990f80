"""Prepare a try before its job: read declarations, ask Airflow, trace fields, make START's event.

The declarations (``[sparklineage] declarations``) of an adopted task, mapped or not, are set as the
task's arguments on the worker, before its fields are rendered. So no serialised DAG depends on the
declarations. After rendering, secrets are registered with Airflow, and the texts are traced: the
dates of the run are found in them (:mod:`airflow_provider_sparklineage.templates`).

START has the inputs and outputs of the last successful run, and the datasets that are declared for
this run. After an event without datasets, a backend that shows the latest run would show nothing
until this run ends or, if it fails, until the next one ends. The event at the end of a try whose
job did not run has the same datasets. If there is no successful run, another run stands in for it
(:mod:`.other_runs`): with its inputs if no input is declared, and with its outputs if no output is
declared, because a backend takes a dataset in START as one that this run itself reads or writes.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from airflow.providers.common.compat.sdk import Asset
from airflow.providers.openlineage.extractors import OperatorLineage
from msgspec.structs import replace
from openlineage.client.event_v2 import Dataset

from airflow_provider_sparklineage.event import openlineage, pipeline, xcom
from airflow_provider_sparklineage.event.backends import backend_of
from airflow_provider_sparklineage.event.model import CAPTURE_KEY
from airflow_provider_sparklineage.event.sending import neutral
from airflow_provider_sparklineage.expectations import (
    DatasetSubset,
    Expectation,
    PartitionRange,
)
from airflow_provider_sparklineage.expectations import declared as declarations
from airflow_provider_sparklineage.expectations.declared import Declared, TaskFields
from airflow_provider_sparklineage.expectations.references import SCHEMES
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.lineage.declared_and_last_known import declared_lineage
from airflow_provider_sparklineage.model import task_rules
from airflow_provider_sparklineage.model.allowance import garbage_collector_paused
from airflow_provider_sparklineage.model.credentials import logger, scrub_name
from airflow_provider_sparklineage.model.datasets import DatasetName, Naming
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import RulesError, ScheduleError
from airflow_provider_sparklineage.model.last_run import BothForms
from airflow_provider_sparklineage.model.locations import Locator
from airflow_provider_sparklineage.operators.attempt import other_runs
from airflow_provider_sparklineage.operators.attempt.other_runs import (
    NO_EARLIER_LINEAGE,
    EarlierLineage,
)
from airflow_provider_sparklineage.operators.masking import mask, masked, masked_message, redacted
from airflow_provider_sparklineage.settings import resolution as settings
from airflow_provider_sparklineage.settings.connection import is_converted
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from airflow_provider_sparklineage.spark.submit import injection
from airflow_provider_sparklineage.spark.submit.submission import Submission, as_texts
from airflow_provider_sparklineage.templates import TracedText, Tracer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow.providers.common.compat.sdk import Context
    from jinja2 import Environment

    from airflow_provider_sparklineage.event.document import Event, Facets
    from airflow_provider_sparklineage.hooks.schedule import ScheduledAsset
    from airflow_provider_sparklineage.model.representation import Adaptation, Answered
    from airflow_provider_sparklineage.model.rules import PartitionRules
    from airflow_provider_sparklineage.settings.resolution import Settings, Source
    from airflow_provider_sparklineage.spark.capture.bundle import Manifest


log = logger(__name__)


class Prepared(NamedTuple):
    """The settings, and the events of other runs, that the OpenLineage hooks need from Airflow.

    Airflow is asked while the task's fields are rendered. The hooks run in a process that the
    provider forks, and ``airflow dags test`` and ``dag.test()`` answer no call from there: the hook
    would wait until the provider ends it, and the event would be lost.
    """

    settings: Settings
    known: EarlierLineage = NO_EARLIER_LINEAGE
    """The lineage of an earlier run, in the form that XCom and archive have."""
    sent: EarlierLineage = NO_EARLIER_LINEAGE
    """The same lineage as in ``known``, in the form that was sent to the backend."""
    upstream: tuple[Event, ...] = ()
    """Events of the tasks before this task, adapted to the backend; () if the backend shows no
    descriptions."""
    is_converted: bool = False
    """Whether a transport converts events for DataHub; it needs them as the archive has them."""
    sources: tuple[Source, ...] | None = None
    """The sources of the settings, without the operator's arguments, which may still change; None
    if Airflow could not give them."""
    answered: Answered | None = None
    """The time in which the backend answered the task's last event; None if it is not known."""

    def last(self, backend: str) -> BothForms:
        """Give the datasets that the last successful run read and wrote.

        They have two forms: as XCom and archive kept them, and as they were sent to the backend.

        :param backend: the name of the try's backend; :attr:`settings` may have another one,
            because they are the defaults if Airflow could not give the settings at that time
        """
        versions_by_schema = backend_of(backend).versions_by_schema
        return BothForms(self.known.last, self.sent.last, versions_by_schema)


@garbage_collector_paused()  # the last run's event may be large, and the job waits
def prepared(
    resolved: Settings, others: tuple[Source, ...] | None, context: Mapping[str, Any]
) -> Prepared:
    """Ask Airflow for the events of earlier runs and of upstream tasks; never raises.

    :param resolved: the settings, including the operator's arguments
    :param others: the sources of the settings, see :attr:`Prepared.sources`
    :param context: Airflow's context for the template fields; if it has no task instance, Airflow
        is not asked for events
    """
    is_wanted = is_converted(sources.ready_client())
    ti = context.get("ti")
    known, answered, how = NO_EARLIER_LINEAGE, None, resolved.adaptation
    if ti is not None:
        archive = None
        if resolved.archive_url:  # only then does START wait for the import
            from airflow_provider_sparklineage.event import archive as archives

            archive = archives.archive_of(resolved)
            if archive and how.is_timed and backend_of(how.backend).pays_per_column:
                with suppress(Exception):  # the first limit will do
                    name = archives.name_of(other_runs.identity_of(ti))
                    answered = archive.within(other_runs.ARCHIVE_S).answered(name)
        is_dated = context.get("logical_date") is not None
        known = other_runs.last_known(ti, archive, is_dated=is_dated)
    written: tuple[Event, ...] = ()
    if ti is not None and pipeline.shows_descriptions(how):
        written = other_runs.upstream_events(ti, context.get("task") or getattr(ti, "task", None))
    if known.event is not None:  # the whole of a large event would fill memory while the job runs
        known = known.in_form_of(pipeline.sendable(known.event, how))
    sent = _adapted(known.event, how)
    every = (_adapted(event, how) for event in written)
    return Prepared(
        resolved,
        known,
        known if sent is None else known.in_form_of(sent),
        tuple(event for event in every if event is not None),
        is_wanted,
        others,
        answered,
    )


def _adapted(event: Event | None, how: Adaptation) -> Event | None:
    """Adapt the event of another run to the backend; None if there is none, or if that fails.

    :param how: the settings by which events are adapted to the backend
    """
    try:
        return event and pipeline.adapted(event, how)
    except Exception:
        log.debug("The event of another run is not understood.", exc_info=True)
        return None


class TryEndedError(BaseException):
    """Raised in an OpenLineage hook to stop it: Airflow ended the try and sent its event.

    This is not an ``Exception``, because the provider catches an ``Exception`` and sends an event
    without datasets.
    """


NOT_SUBMITTED = Degradation(
    DegradationCode.NOT_SUBMITTED,
    "The try ended before its job was submitted. The event has the datasets that are declared and "
    "those of the last successful run, so that backends keep showing them.",
)


def expected_event(
    declared: Declared, prepared: Prepared, ended: Degradation | None = None
) -> pipeline.Events:
    """Make the event of the datasets that a try is expected to read and write.

    :param declared: the datasets that the task's fields name, and the expectations on them
    :param prepared: the settings, and the events of other runs
    :param ended: for a try that is over, the degradation that says why its event has no collected
        lineage; None for START
    """
    settings, known, sent, *_ = prepared
    events = _expected_event(declared, settings, sent, ended)
    if ended is None or sent is known:  # a START is not kept, so its kept form is not needed
        return events
    return pipeline.Events(_expected_event(declared, settings, known, ended).kept, events.adapted)


def _expected_event(
    declared: Declared, resolved: Settings, known: EarlierLineage, ended: Degradation | None
) -> pipeline.Events:
    last, stand_in, _ = known
    if not last.has_datasets:
        last = stand_in.only(inputs=not declared.inputs, outputs=not declared.outputs)
    lineage = declared_lineage(
        declared.inputs,
        declared.outputs,
        declared.expectations,
        resolved.partitioning,
        resolved.limits,
        last,
    )
    how, representation = resolved.adaptation, resolved.representation
    if ended is None:
        return pipeline.events_of(lineage, how, representation=representation, mask=masked)
    lineage = replace(lineage, degradations=(*lineage.degradations, ended))
    return pipeline.events_of(lineage, how, ReadReport(), representation, masked)


def sent_event(events: pipeline.Events, how: Adaptation, prepared: Prepared | None = None) -> Event:
    """Give the event that is sent: with descriptions, and with as many columns as may be sent.

    :param events: the event in both forms; the one for the backend is used
    :param how: the settings by which events are adapted to the backend
    :param prepared: the events of other runs, which have descriptions for the event's datasets;
        None if Airflow was not asked
    """
    event = events.adapted
    others = (
        pipeline.Others(prepared.sent.event, prepared.upstream) if prepared else pipeline.NO_OTHERS
    )
    for known in (others, pipeline.NO_OTHERS):  # the kept event of another run may be damaged
        try:
            event = pipeline.ready_to_send(event, how, known)
            break
        except Exception:  # the provider would send the event without datasets
            log.warning("The lineage is sent with less than its backend shows.", exc_info=True)
    return event


def operator_lineage(
    events: pipeline.Events,
    how: Adaptation,
    prepared: Prepared | None = None,
    operator: Any = None,
    sent: Event | None = None,
) -> OperatorLineage[Any, Any]:
    """Convert an event for Airflow's OpenLineage provider, which makes the header itself.

    :param events: the event in both forms; the form for the backend is converted
    :param how: the settings by which events are adapted to the backend
    :param prepared: the events of other runs, as for :func:`sent_event`
    :param operator: the operator, whose own text is added if a transport converts events
    :param sent: the result of :func:`sent_event`; None to make it
    """
    parts = openlineage.parts(sent_event(events, how, prepared) if sent is None else sent)
    if prepared and prepared.is_converted:
        parts = parts._replace(run_facets=_carrying(parts.run_facets, events.kept, how, operator))
    return OperatorLineage(**parts._asdict())


def _carrying(run_facets: Facets, kept: Event, how: Adaptation, operator: Any) -> Facets:
    """Add a run facet that carries a whole event, for transports that convert events.

    The facets are not changed if the try has not ended, or if the event cannot be put into a facet.

    :param run_facets: the run facets of the event that is sent
    :param kept: the event in the form for XCom and archive
    :param how: the settings with the limit of an event that is sent
    :param operator: the operator, whose own text is added to the carried event
    """
    if CAPTURE_KEY not in run_facets:
        return run_facets
    try:
        from airflow_provider_sparklineage.operators.attempt.publish import own_documentation

        shared = neutral(pipeline.sendable(kept, how), redacted, own_documentation(operator))
        return openlineage.with_neutral(run_facets, shared)
    except Exception:  # the event itself has the same lineage, with the backend's names
        log.warning("The lineage is converted as it is sent to another backend.", exc_info=True)
        return run_facets


_ENDED = frozenset({"success", "failed", "skipped", "removed"})


def ended_as(ti: Any) -> str | None:
    """Ask Airflow whether it has ended a try while the job ran, and in which state; never raises.

    A user may have marked the task as failed, for example. Then the API server sends an event, and
    the worker is stopped, which looks like a failure of the job. A real failure has no such state
    yet: Airflow's task runner reports it only after ``execute()``.

    :param ti: the task instance of the try
    :return: the state; None if Airflow has not ended the try, or does not answer
    """
    map_index = None if ti.map_index in (None, -1) else ti.map_index
    try:
        states = ti.get_task_states(
            dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id], map_index=map_index
        )
        state = str(next(iter(states[ti.run_id].values())))
    except Exception:
        log.debug("The task's state is not known.", exc_info=True)
        return None
    return state if state in _ENDED else None


# The fields of an operator that name datasets. The package `expectations` reads them; the part that
# needs Airflow is here: translating assets, inlets and outlets into datasets.


def declared_in_fields(
    operator: Any,
    texts: Sequence[TracedText],
    rules: PartitionRules,
    partition_key: str | None = None,
    naming: Mapping[str, str] | None = None,
) -> Declared:
    """Find the datasets that an operator's rendered fields name, and the expectations on them.

    :param texts: traced texts of the fields
    :param rules: the user's partitioning rules
    :param partition_key: partition key of the run; None if it has none
    :param naming: the Spark properties that can change how the listener names datasets: those of
        the submission, or if None those of the operator
    """
    conf = as_texts(operator.lineage_properties)
    own_naming = {
        key: value
        for key, value in (conf if naming is None else naming).items()
        if key.startswith("spark.openlineage.dataset.")
    }
    locator = Locator(Naming.from_properties(own_naming), rules)
    task = TaskFields(
        texts,
        _datasets(operator.inlets, locator),
        _datasets(operator.outlets, locator),
        operator.reads,
        operator.writes,
        partition_key,
        operator.partition_key_dimensions,
    )
    declared = declarations.declared(task, locator, partial(_dataset, locator=locator))
    if partition_key:
        try:
            expectations, problems = _from_schedule(operator, partition_key, locator)
        except Exception as error:  # other declarations hold without the schedule
            log.debug("The schedule cannot be understood.", exc_info=True)
            expectations, problems = [], [f"The schedule cannot be understood: {error}"]
        declared = replace(
            declared,
            expectations=(*declared.expectations, *expectations),
            problems=(*declared.problems, *problems),
        )
    return replace(_without_secrets(declared), naming=own_naming)


def _from_schedule(
    operator: Any, partition_key: str, locator: Locator
) -> tuple[list[Expectation], list[str]]:
    """Make expectations of the upstream partitions that the DAG's schedule names for a run.

    :return: the expectations, and a problem for each asset whose mapper does not take the key
    """
    timetable = getattr(operator.get_dag(), "timetable", None)
    if not hasattr(timetable, "partition_mapper_config"):
        return [], []  # before the import, because few DAGs have such a schedule
    from airflow_provider_sparklineage.expectations.schedule import from_schedule
    from airflow_provider_sparklineage.hooks.schedule import assets_of

    try:
        assets = assets_of(timetable)
    except ScheduleError as error:
        return [], [str(error)]
    expectations: list[Expectation] = []
    problems: list[str] = []
    for asset in assets:
        dataset = scheduled_dataset(asset, locator)
        if dataset is None:
            log.info(
                "No OpenLineage dataset is known for the asset %s of the schedule; a partitioning "
                "rule with the key 'asset' can name it.", asset.name or asset.uri,
            )  # fmt: skip
            continue
        spec = locator.rules.spec(dataset)
        pattern = spec.key if spec else None
        try:
            upstream = asset.upstream(partition_key)
        except ScheduleError as error:
            problems.append(str(error))
            continue
        expected = from_schedule(dataset, upstream, asset.text, partition_key, pattern)
        expectations += [expected] if expected.partitions else []
    return expectations, problems


def scheduled_dataset(asset: ScheduledAsset, locator: Locator) -> DatasetName | None:
    """Give the dataset of an asset of the schedule; None if it is not known.

    :param locator: finds the dataset of a URI, and has the rules that name datasets of assets
    """
    if named := locator.rules.name_of(asset.name, asset.uri):
        location = locator.locate(named)
        return location.dataset if location else None
    return _dataset(Asset(uri=asset.uri), locator) if asset.uri else None


def _without_secrets(declared: Declared) -> Declared:
    """Leave out expectations with a value that Airflow masks: they are neither kept nor sent.

    An expectation with a masked value would never match, because observed values are not masked
    when they are compared. In the sources of the other expectations, secrets are hidden.

    :return: a copy, in which ``problems`` has a sentence on each expectation that is left out
    """
    kept, problems = [], list(declared.problems)
    for expectation in declared.expectations:
        values = [expectation.location, expectation.where]
        values += [value or "" for p in expectation.partitions or () for _, value in p.values]
        if any(masked(value) != value for value in values):
            name = expectation.dataset or expectation.table or "a dataset"
            problems.append(
                f"What is expected of {name} has a value that Airflow masks as a secret, so it is "
                "neither kept nor compared with what is observed."
            )
            continue
        sources = tuple(
            replace(s, template=masked_message(s.template), value=masked_message(s.value))
            for s in expectation.sources
        )
        kept.append(replace(expectation, sources=sources))
    return replace(declared, expectations=tuple(kept), problems=tuple(dict.fromkeys(problems)))


def _datasets(entries: Iterable[object], locator: Locator) -> list[DatasetName]:
    names = []
    for entry in entries:
        name = _dataset(entry, locator)
        if name is None:
            log.info("No OpenLineage dataset is known for %r; it is left out.", entry)
        else:
            names.append(name)
    return names


def asset_name(asset: Asset, locator: Locator) -> DatasetName | None:
    """Give the OpenLineage name of an asset's dataset; None if it has none.

    An asset with a known scheme, such as ``s3``, has the dataset that its URI would have as a text
    in ``reads``. For other assets Airflow is asked.

    :param locator: finds the dataset of a URI, with the names that the try's datasets have
    """
    if urlsplit(asset.uri).scheme in SCHEMES:
        location = locator.locate(asset.uri, may_be_file=True)
        return location.dataset if location else None
    from airflow.providers.openlineage.utils.utils import translate_airflow_asset

    dataset = translate_airflow_asset(asset, None)
    return DatasetName(dataset.namespace, dataset.name) if dataset is not None else None


def _dataset(entry: object, locator: Locator) -> DatasetName | None:
    name = _named(entry, locator)
    return name and DatasetName(scrub_name(name.namespace), scrub_name(name.name))


def _named(entry: object, locator: Locator) -> DatasetName | None:
    if isinstance(entry, Dataset):
        return DatasetName(entry.namespace, entry.name)
    if isinstance(entry, Asset):
        return asset_name(entry, locator)
    from airflow.providers.openlineage.extractors.manager import ExtractorManager

    dataset = ExtractorManager.convert_to_ol_dataset(entry)
    return DatasetName(dataset.namespace, dataset.name) if dataset is not None else None


def push_expected(manifest: Manifest, context: Context, prepared: Prepared | None) -> None:
    """Push an XCom with the try's expected datasets and partitions; never raises.

    The tab of this package on the task instance's page shows them while the job runs.

    :param manifest: the manifest of the try, in which they were noted
    :param prepared: the events of other runs, whose datasets tell folders of datasets from
        datasets; None if Airflow was not asked
    """
    try:
        if manifest.task is None:
            return
        known = prepared.known if prepared else NO_EARLIER_LINEAGE
        runs = (known.last, known.stand_in)
        document = xcom.expected_document(
            manifest.task.try_number,
            manifest.declared_inputs,
            manifest.declared_outputs,
            manifest.expectations,
            masked,
            [one.dataset for run in runs for one in (*run.inputs, *run.outputs)],
        )
        if (value := xcom.fitted_document(document, xcom.MAX_BYTES)) is not None:
            context["ti"].xcom_push(key=xcom.EXPECTED_KEY, value=value)
    except (Exception, SystemExit):  # of an XCom backend of the user's
        log.debug("What is expected is shown when the task has ended.", exc_info=True)


# Before the fields of an operator are rendered, declarations are set. After the rendering, secrets
# are hidden and the texts are traced.


def traces(
    operator: Any, templates: Mapping[str, object], environment: Environment, context: Context
) -> tuple[TracedText, ...]:
    """
    Trace the texts of fields that were just rendered, to find dates in them; never raises.

    :param operator: the operator, with its fields rendered
    :param templates: by field name, the values before rendering of the fields that can name data
    :param environment: the Jinja environment that Airflow rendered with
    :param context: the context that Airflow rendered with
    """
    traced: list[TracedText] = []
    tracer = Tracer(environment, context)
    for name, template in templates.items():
        try:
            content = _with_files(template, tuple(operator.template_ext), environment)
            rendered = getattr(operator, name, None)
            traced += tracer.trace_all(name, content, rendered)
        except (Exception, SystemExit):  # of a macro of the user's, which is called again
            log.debug("The templates in %s could not be traced", name, exc_info=True)
    return tuple(traced)


def hide_secrets(operator: Any) -> None:
    """Register secrets of an operator with Airflow, which then masks them in logs and pages.

    They are the secrets of the user's OpenLineage transport, which are among the operator's Spark
    properties. Call this before Airflow shows the rendered fields.
    """
    conf = as_texts(operator.lineage_properties)
    mask(*injection.transport_secrets(Submission(conf=conf)))


def _with_files(template: object, extensions: tuple[str, ...], environment: Environment) -> object:
    """Replace the names of template files by the files' content, as rendering does.

    :param template: the value of a field before rendering: a text, or texts in lists and dicts
    :param extensions: endings of the names of template files, such as ``.sql``
    :param environment: the Jinja environment, which loads the files
    """
    if not extensions:
        return template
    if isinstance(template, str) and template.endswith(extensions) and environment.loader:
        return environment.loader.get_source(environment, template)[0]
    if isinstance(template, (list, tuple)):
        return type(template)(_with_files(item, extensions, environment) for item in template)
    if isinstance(template, dict):
        return {key: _with_files(item, extensions, environment) for key, item in template.items()}
    return template


_OPTION = "declarations"


def declare(operator: Any) -> None:
    """Set the arguments of an adopted task's operator from ``[sparklineage] declarations``.

    If the declarations cannot be read, the arguments get their defaults, and the try notes the
    problem for its event.
    """
    text = settings.value(_OPTION, sources.configuration(_OPTION))
    if not text:
        return
    try:
        declarations = task_rules.load_declarations(text)
    except RulesError as error:
        declarations = task_rules.TaskDeclarations()
        operator.lineage_try.note_unrendered(str(error))
    for name, value in declared_arguments(declarations, operator).items():
        setattr(operator, name, value)


def declared_arguments(declared: task_rules.TaskDeclarations, operator: Any) -> dict[str, object]:
    """Give, by name, all arguments of an operator that declarations can set.

    An argument that the declarations do not set has its default.

    :param declared: the declarations for all tasks
    """
    rule = declared.for_task(task_rules.TaskNames(operator.dag_id, operator.task_id))
    arguments = rule.arguments if rule else {}
    return {
        name: _argument(name, arguments[name])
        if name in arguments
        else getattr(type(operator), name)
        for name in task_rules.DECLARED_ARGUMENTS
    }


def _argument(name: str, value: task_rules.Declared) -> object:
    if name == "on_partition_mismatch":
        return value
    entries = value if isinstance(value, tuple) else (value,)
    return [entry if isinstance(entry, str) else _subset(entry) for entry in entries]


def _subset(declared: task_rules.Subset) -> DatasetSubset:
    def value(column: str, of: object) -> object:
        if isinstance(of, task_rules.ValueRange):
            return PartitionRange(column, of.start, of.end, of.step)
        return list(of) if isinstance(of, tuple) else of

    def part(values: Mapping[str, object]) -> dict[str, object]:
        return {column: value(column, of) for column, of in values.items()}

    partitions = declared.partitions
    return DatasetSubset(
        declared.dataset,
        list(map(part, partitions)) or None if isinstance(partitions, tuple) else part(partitions),
        declared.where or None,
    )
