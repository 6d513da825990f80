"""Defects of this package, in each part that the task goes through."""

from __future__ import annotations

from tests.faults.registry import Area

AREA = Area(
    "Defects in this package",
    "A part that fails costs what it would have made. The event has the datasets that are "
    "declared, and says that the rest could not be merged.",
)
fault = AREA.fault
NONE = ("injection_failed",)


def _breaks(name, error=None):
    return lambda bench: bench.breaks(name, error)


BEFORE = {
    "resolving the settings": (".settings.resolution.Settings.described", NONE),
    "naming the try": (".operators.attempt.submit.manifest_of", NONE),
    "making the bundle": (".operators.attempt.submit.bundles.create", NONE),
    "finding Spark": (".spark.submit.additions.listener_selection.spark_of", NONE),
    "reading spark-defaults.conf": (
        ".spark.submit.distribution.read_properties",
        NONE,
    ),
    "adding the listener": (".spark.submit.additions.injected", NONE),
    "packing the observer": (
        ".spark.submit.deploy_mode.submitted_files.write_observer",
        NONE,
    ),
    "checking the listener's jar": (
        ".spark.submit.additions.listener_selection.jar_for",
        NONE,
    ),
    "protecting keys": (".operators.attempt.submit.injection.transport_secrets", NONE),
    "hiding secrets among the rendered properties": (
        ".operators.attempt.prepare.hide_secrets",
        (),
    ),
    "asking for the last run": (".operators.attempt.prepare.prepared", ()),
    "tracing templates": (".operators.attempt.prepare.traces", ()),
    "showing links": (".links.lineage.LineageJobLink.get_link", ()),
}
for what, (name, codes) in BEFORE.items():
    fault(f"A defect in {what}", *codes)(_breaks(name))

MERGING = {
    "reading events": ".spark.capture.events.read_events",
    "accumulating events": ".lineage.bundle.accumulate",
    "naming datasets": ".lineage.bundle.with_canonical_names",
    "binding observations": ".lineage.observed.binding.bind",
    "repairing what the listener reports": ".lineage.merge.repaired",
    "following the actions": ".lineage.merge.accumulated",
    "finding partitions": ".lineage.merge._graded",
    "composing columns": ".lineage.merge._composed",
    "finding gaps of column lineage": ".lineage.merge.gaps",
    "comparing partitions": ".lineage.merge._reported",
}
for what, name in MERGING.items():
    fault(f"A defect in {what}", "merge_failed")(_breaks(name))

ERRORS = (MemoryError(), RecursionError(), KeyError("dt"), AssertionError(), StopIteration())
for error in ERRORS:
    fault(f"Merging raises {type(error).__name__}", "merge_failed")(
        _breaks(".lineage.bundle.merge", error)
    )

EVENT = {
    "making facets": ".event.pipeline.made",
    "stripping credentials": ".event.pipeline.without_credentials",
    "masking secrets": ".event.pipeline.masked",
    "truncating texts": ".event.pipeline.shortened",
    "replacing names": ".event.pipeline.renamed",
    "repairing for the backend": ".event.pipeline.backend_of",
    "fitting the size": ".event.pipeline.fitted",
}
for what, name in EVENT.items():
    fault(f"A defect in {what}", warns="cannot be reported")(_breaks(name))


@fault("A defect in what stands in for a lineage that cannot be merged", "merge_failed")
def _(bench):
    bench.breaks(".lineage.bundle.merge")
    bench.breaks(".lineage.declared_and_last_known.declared_lineage")


@fault("A defect in cleaning up", leaves=("*",))
def _(bench):
    bench.breaks(".operators.attempt.collect.clean_up")


@fault("A defect in showing the lineage in Airflow", warns="is not shown in Airflow")
def _(bench):
    bench.breaks(".event.xcom.encode")


@fault("A defect in following up on partitions")
def _(bench):
    bench.breaks(".operators.partition_check.checks")
