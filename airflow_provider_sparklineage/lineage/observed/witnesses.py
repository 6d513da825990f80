"""The observer's records of a try, read from its bundle and joined with the listener's application.

The corrections are listed in :func:`observed`, in their order: each takes an application and the
records, and gives a new application.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_sparklineage.lineage.application.observed_actions import (
    identities,
    with_observed_actions,
)
from airflow_provider_sparklineage.lineage.application.observed_binding import (
    DatasetIndex,
    Observations,
    bind,
)
from airflow_provider_sparklineage.lineage.application.observed_corrections import (
    with_failed_writes,
    with_real_batches,
    with_reported_ends,
    without_inferred_files,
    without_skipped_writes,
)
from airflow_provider_sparklineage.model.budget import TOO_LONG, Budget, SpentError, because
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.model.locations import Locator, RememberingLocator
from airflow_provider_sparklineage.model.producer import facet
from airflow_provider_sparklineage.spark.capture.observations import Messages, ObservationReport

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.lineage.application.accumulation import SparkApplication
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.capture.observations import (
        ObservationRecord,
        SchemaRecord,
    )


# --- facets of datasets that only the observer saw ------------------------------------------------


_SPEC = "https://openlineage.io/spec/facets"
_SCHEMA = f"{_SPEC}/1-2-0/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet"
_DATA_SOURCE = f"{_SPEC}/1-0-1/DatasourceDatasetFacet.json#/$defs/DatasourceDatasetFacet"
_LIFECYCLE = (
    f"{_SPEC}/1-0-1/LifecycleStateChangeDatasetFacet.json#/$defs/LifecycleStateChangeDatasetFacet"
)


def observed_facets(
    name: DatasetName, schema: SchemaRecord | None, change: str
) -> dict[str, msgspec.Raw]:
    """Make the facets of a dataset.

    :param schema: its columns; None where they are not known
    :param change: ``OVERWRITE`` or ``CREATE``, for a dataset that was written; empty for none
    """
    made = {"dataSource": facet(_DATA_SOURCE, name=name.namespace, uri=name.namespace)}
    if change:
        made["lifecycleStateChange"] = facet(_LIFECYCLE, lifecycleStateChange=change)
    facets = {key: msgspec.Raw(msgspec.json.encode(value)) for key, value in made.items()}
    if schema is not None and schema.fields:
        try:
            columns = [_field(column.name, column.type) for column in schema.fields]
            facets["schema"] = msgspec.Raw(msgspec.json.encode(facet(_SCHEMA, fields=columns)))
        except RecursionError:  # a damaged record may be nested as deeply as it likes
            return facets
    return facets


def _field(name: str, kind: Any) -> dict[str, Any]:
    """Write a column as the listener does, with the parts of nested types below it.

    :param kind: the type as Spark writes it as JSON
    """
    if not isinstance(kind, dict):
        return {"name": name, "type": str(kind)}
    below: list[dict[str, Any]] = []
    match kind.get("type"):
        case "struct":
            fields = kind.get("fields")
            below = [
                _field(str(f.get("name", "")), f.get("type"))
                for f in (fields if isinstance(fields, list) else ())
                if isinstance(f, dict)
            ]
        case "array":
            below = [_field("_element", kind.get("elementType"))]
        case "map":
            below = [_field("key", kind.get("keyType")), _field("value", kind.get("valueType"))]
    nested = {"fields": below} if below else {}
    return {"name": name, "type": str(kind.get("type", "")), **nested}


MAX_PARTITIONS = 500_000
"""Of all that was observed; each takes up to 1 KB. A list that was there before counts as one."""


class Witnessed(NamedTuple):
    """An application by both witnesses.

    :param application: with the actions that only the observer saw, and without the writes that it
        saw to be skipped
    :param observations: None if there are none
    """

    application: SparkApplication
    observations: Observations | None = None
    degradations: tuple[Degradation, ...] = ()


def observed(
    bundle: CaptureBundle,
    application: SparkApplication,
    locator: Locator,
    budget: Budget,
) -> Witnessed:
    """Read what the observer wrote, all of it or nothing: partitions of a part would be wrong.

    :param application: as the listener reported it
    """
    report = ObservationReport()
    locator = RememberingLocator.of(locator)  # each layout is looked at seven times
    try:
        records = _bounded(bundle.observations(report, budget.is_spent), report)
        if not records and not report.malformed_lines:
            return Witnessed(application, degradations=_nothing_observed(bundle, application))
        records = with_reported_ends(application, records)
        done = with_real_batches(application, records, locator)
        index = DatasetIndex(identities(done), locator)
        done = with_failed_writes(done, records, index)
        done, records = without_skipped_writes(done, records, index)
        done = with_observed_actions(done, records, locator, observed_facets, budget)
        done = without_inferred_files(done, records, locator)
        observations = bind(records, identities(done), locator, budget)
    except CaptureError as error:  # the events are as good as they are without
        lost = Degradation(DegradationCode.OBSERVATIONS_MISSING, str(error))
        return Witnessed(application, degradations=(lost,))
    except SpentError as reason:
        return Witnessed(application, degradations=(_unobserved(reason),))
    return Witnessed(done, observations, tuple(_observation_troubles(report, observations)))


def _nothing_observed(
    bundle: CaptureBundle, application: SparkApplication
) -> tuple[Degradation, ...]:
    # A job that dies before it makes a session is recognised by the lack of events already.
    if not {"py_files", "observer"} & set(bundle.manifest.injected) or not application.events:
        return ()
    return (
        Degradation(
            DegradationCode.OBSERVATIONS_MISSING,
            "The observer wrote nothing, so no partitions are known; another "
            "sitecustomize before ours on the driver's Python path would explain it.",
        ),
    )


def _bounded(
    records: Iterable[ObservationRecord], report: ObservationReport
) -> list[ObservationRecord]:
    """List records.

    :param report: of reading them
    :raise SpentError: if they have more partitions than may be in memory, or were not all read
    """
    found: list[ObservationRecord] = []
    partitions, lists = 0, set()
    for record in records:
        layouts = [
            *(layout for read in record.reads for layout in read.layouts or ()),
            *(layout for write in record.writes for layout in (*write.layouts, *write.removed)),
        ]
        for listed in (layout.partitions for layout in layouts if layout.partitions):
            partitions += 1 if id(listed) in lists else len(listed)  # equal ones are one object
            lists.add(id(listed))
        if partitions > MAX_PARTITIONS:
            msg = f"they are more than {MAX_PARTITIONS}"
            raise SpentError(msg)
        found.append(record)
    if report.cut:
        raise SpentError(TOO_LONG)
    return found


def _unobserved(reason: object) -> Degradation:
    return Degradation(
        DegradationCode.COLLECTION_CUT,
        "The partitions that were observed were left out, and those that the listener reports are "
        f"used, {because(reason)}",
    )


def _observation_troubles(
    report: ObservationReport, observations: Observations
) -> list[Degradation]:
    malformed = Messages(report.malformed)
    malformed.count = report.malformed_lines
    problems = (
        (report.errors, DegradationCode.OBSERVER_FAILED, "The observer failed at times: {}."),
        (
            malformed,
            DegradationCode.MALFORMED_OBSERVATIONS,
            "Lines of the observer's file cannot be read and were left out: {}.",
        ),
        (report.stopped, DegradationCode.OBSERVATION_CUT, "The observer stopped looking: {}."),
        (
            Messages(observations.unmatched),
            DegradationCode.OBSERVATION_UNTIED,
            "Read or written, but it cannot be named as a dataset: {}.",
        ),
    )
    return [Degradation(code, text.format(met)) for met, code, text in problems if met.count]
