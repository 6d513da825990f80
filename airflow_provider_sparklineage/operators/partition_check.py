"""Act on observed partitions: warn or fail if they are not as expected, record them on assets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import (
    AirflowFailException,
    AirflowTaskTimeout,
    Asset,
    Stats,
)

from airflow_provider_sparklineage.expectations import Kind, Side
from airflow_provider_sparklineage.lineage.partitions.comparison import (
    PartitionStatus,
    Reconciliation,
)
from airflow_provider_sparklineage.lineage.partitions.selection import wanted
from airflow_provider_sparklineage.links.lineage import tab_page
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import DeclarationError
from airflow_provider_sparklineage.model.globs import compiled
from airflow_provider_sparklineage.model.partitioning import KEY_FIELD
from airflow_provider_sparklineage.model.representation import MismatchPolicy
from airflow_provider_sparklineage.model.subset import extent
from airflow_provider_sparklineage.model.texts import some
from airflow_provider_sparklineage.operators.attempt.prepare import asset_name
from airflow_provider_sparklineage.storage.bounded import OutOfTimeError, within

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.model.partitioning import Partition

log = logger(__name__)

CALLBACK_S = 30
"""Most seconds that the task waits for a callback."""
MAX_KEYS = 1000
"""Most partitions recorded on one asset: each of them starts a run of each DAG that is scheduled on
the asset."""
_MOST_NAMED = 5  # most keys of an asset that the log names
MAX_KEY_LENGTH = 250
"""Most characters of a partition key that Airflow's database can store."""
# Airflow stores the keys together with the end of the task, so a key that the database refuses
# makes the task fail. PostgreSQL refuses a NUL, MySQL a character that takes more than three bytes
# of UTF-8. Half of a surrogate pair cannot be encoded at all.
_UNKEPT = re.compile("[\0\ud800-\udfff\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class PartitionCheck:
    """The expected and the observed partitions of a dataset that a job read or wrote.

    Mismatches are passed to ``on_partition_mismatch_callback``.

    :param side: ``read`` or ``write``
    :param dataset: the dataset, with its partitions and their comparison
    :param is_exact: whether Spark was observed to access these partitions, and the expectation is
        from a declaration or a path; only then does a mismatch fail the task if
        ``on_partition_mismatch`` is ``fail``
    :param page: URL of the task's tab in Airflow, which shows the same; empty if it is not known
    """

    side: Side
    dataset: LineageDataset
    is_exact: bool
    page: str = ""

    @property
    def check(self) -> Reconciliation:
        """The result of comparing the expected partitions with the observed ones."""
        return self.dataset.check

    @property
    def message(self) -> str:
        """Describe a mismatch in a sentence, with the source of the expectation."""
        expected, check = self.dataset.expected, self.check
        verb = "read" if self.side is Side.READ else "wrote"
        planned = check.unexpected & self.dataset.planned
        parts = [
            f"{how} {extent(partitions).summary}"
            for how, partitions in (
                (verb, check.unexpected - planned),
                (f"planned to {self.side}", planned),
            )
            if partitions
        ]
        if check.missing:
            parts.append(f"did not {self.side} {extent(check.missing).summary}")
        sources = [s for s in (expected.sources if expected else ()) if s.kind is not Kind.INFERRED]
        because = "; ".join(dict.fromkeys(f"{s.template} in {s.field}" for s in sources[:3]))
        source = f" ({because})" if because else ""
        what = wanted(expected) if expected else "nothing"
        return f"{self.dataset.name}: {' and '.join(parts)}; expected {what}{source}."


def follow_up(
    operator: Any, lineage: TaskLineage, context: Context, locator: Locator
) -> list[AirflowFailException]:
    """Act on the partitions that a successful job read and wrote; never raises.

    :param operator: the operator, with its arguments on partitions, and its outlets
    :param lineage: the lineage of the try
    :param locator: gives outlet assets the names that the try's datasets have
    :return: the exception that fails the task, if ``on_partition_mismatch`` is ``fail`` and a
        mismatch is certain (:attr:`PartitionCheck.is_exact`), else []
    """
    of, policy = operator.check_partitions_of, operator.on_partition_mismatch
    failing: list[AirflowFailException] = []
    try:
        checked = checks(lineage, of, tab_page(context.get("ti")))
        failing += failures(checked, policy)
        report(checked, policy, operator.on_partition_mismatch_callback)
        for glob in unmatched_globs(lineage, of):
            log.warning(
                "check_partitions_of names %r, and the job accessed no such dataset, so nothing "
                "was checked for it.", glob,
            )  # fmt: skip
        key_format = operator.record_asset_partitions
        if is_default := key_format is None:
            key_format = is_partitioned_at_runtime(operator.outlets, context)
        if key_format and not failing:
            outlets = operator.outlets
            keys = record_asset_partitions(outlets, lineage, key_format, context, locator)
            if is_default and keys:
                _tell_of_default(keys)
    except (Exception, AirflowTaskTimeout):  # Spark's end decides the task's outcome, not this
        log.warning("Following up on expected and observed partitions failed.", exc_info=True)
    return failing


def checks(
    lineage: TaskLineage, of: str | Collection[str] | None = None, page: str = ""
) -> list[PartitionCheck]:
    """List the checks of a task's datasets, one for each input and one for each output.

    :param of: the datasets to check: ``reads``, ``writes``, a glob of datasets, or several of
        these; None checks all datasets. ``["reads", "*/sales"]`` are the inputs that match the glob
    :param page: URL of the task's tab in Airflow
    """
    policy = MismatchPolicy.of_arguments("", of)
    return [
        PartitionCheck(side, dataset, dataset.is_check_exact, page)
        for side, datasets in ((Side.READ, lineage.inputs), (Side.WRITE, lineage.outputs))
        for dataset in datasets
        if policy.is_for(side, dataset.name)
    ]


def unmatched_globs(lineage: TaskLineage, of: str | Collection[str] | None) -> list[str]:
    """List the globs that match no dataset of the task, perhaps because they are misspelt.

    :param of: the argument ``check_partitions_of``, from which the globs are taken
    """
    names = {str(d.name) for d in (*lineage.inputs, *lineage.outputs)}
    globs = MismatchPolicy.of_arguments("", of).globs
    return [glob for glob in globs if not any(map(compiled(glob).fullmatch, names))]


def failures(checked: Iterable[PartitionCheck], policy: str) -> list[AirflowFailException]:
    """Give the exception that fails the task, if the policy is ``fail`` and a mismatch is certain.

    :param policy: the argument ``on_partition_mismatch``
    :return: one exception with all certain mismatches (:attr:`PartitionCheck.is_exact`), or []
    """
    failing = [entry for entry in checked if entry.check.status.is_mismatch and entry.is_exact]
    if policy != "fail" or not failing:
        return []
    msg = (
        "The job ran, and accessed other partitions than expected: "
        f"{' '.join(entry.message for entry in failing)} Nothing was rolled back; the task fails "
        "because of on_partition_mismatch='fail', and is not retried."
        f"{_see(failing[0].page)}"
    )
    return [AirflowFailException(msg)]


def _see(page: str) -> str:
    return f" See {page}" if page else ""


def report(
    checked: Iterable[PartitionCheck],
    policy: str,
    callback: Callable[[list[PartitionCheck]], object] | None,
) -> None:
    """Count the checks by status in Airflow's metrics, and warn of mismatches.

    :param policy: the argument ``on_partition_mismatch``: under ``ignore`` there is no warning and
        no callback; under ``fail`` there is no warning if a mismatch is certain
        (:attr:`PartitionCheck.is_exact`), because the exception that fails the task names it
    :param callback: called with the mismatches; if the callback raises, the task does not fail
    """
    checked = list(checked)
    _count(checked)
    mismatches = [entry for entry in checked if entry.check.status.is_mismatch]
    if not mismatches or policy == "ignore":
        return
    if policy != "fail" or not any(entry.is_exact for entry in mismatches):
        log.warning(
            "The job accessed other partitions than expected: %s%s",
            " ".join(entry.message for entry in mismatches),
            _see(mismatches[0].page),
        )
    if callback is not None:
        _call(callback, mismatches)


def _count(checked: Iterable[PartitionCheck]) -> None:
    try:
        for entry in checked:
            Stats.incr(f"sparklineage.partition_check.{entry.check.status}")
    except Exception:  # most often the metrics backend cannot be reached
        log.warning("Partition checks were not counted in Airflow's metrics.", exc_info=True)


def _call(
    callback: Callable[[list[PartitionCheck]], object], mismatches: list[PartitionCheck]
) -> None:
    """Call the callback, wait at most :data:`CALLBACK_S` for it, and log errors as warnings."""
    try:
        within(CALLBACK_S, lambda: callback(mismatches), "on_partition_mismatch_callback")
    except AirflowTaskTimeout:
        log.warning("on_partition_mismatch_callback was still running at the task's timeout.")
    except OutOfTimeError:
        log.warning(
            "on_partition_mismatch_callback has not returned for %d s; the task goes on without "
            "it.", CALLBACK_S,
        )  # fmt: skip
    except Exception as error:
        log.warning("on_partition_mismatch_callback failed.", exc_info=error)


# --- asset partitions -----------------------------------------------------------------------------


def is_partitioned_at_runtime(outlets: Iterable[object], context: Context) -> bool:
    """Whether the DAG leaves it to its tasks to name the partitions of their outlets.

    Its schedule is ``PartitionedAtRuntime`` (Airflow 3.3), and nobody has named a key yet: the run
    has none of its own, which Airflow would give to all of its outlets, and no outlet has one from
    the task's own code.
    """
    timetable = getattr(context.get("dag"), "timetable", None)
    if getattr(timetable, "partitioned_at_runtime", False) is not True:
        return False
    if getattr(context.get("dag_run"), "partition_key", None) is not None:
        return False
    events: Any = context["outlet_events"]
    assets = (outlet for outlet in outlets if isinstance(outlet, Asset))
    return not any(getattr(events[asset], "partition_keys", None) for asset in assets)


def record_asset_partitions(
    outlets: Iterable[object],
    lineage: TaskLineage,
    key_format: str | bool,
    context: Context,
    locator: Locator,
) -> dict[str, list[str]]:
    """Record the observed partitions of each output on the outlet asset for that output.

    If partitions cannot be recorded, a warning is logged, and the task does not fail.

    :param outlets: the task's outlets; those that are no assets are left out
    :param lineage: the lineage of the try
    :param key_format: format of the keys, e.g. ``"{dt}|{region}"``; True joins the values of a
        partition with ``|``
    :param locator: gives outlet assets the names that the try's datasets have
    :return: the recorded keys, by the URI of the asset
    """
    recorded = {}
    outputs = {d.name: d for d in lineage.outputs if d.observed and d.subset is not None}
    for asset in outlets:
        if not isinstance(asset, Asset):
            continue
        dataset = outputs.get(name) if (name := asset_name(asset, locator)) else None
        if (
            dataset is None
            or dataset.subset is None
            or dataset.check.status is PartitionStatus.UNOBSERVED
        ):
            continue
        if not dataset.subset.exact:
            log.warning(
                "Which partitions of %s were written is not certain, so none is recorded on its "
                "asset.", dataset.name,
            )  # fmt: skip
            continue
        try:
            keys = sorted({partition_key(p, key_format) for p in dataset.subset.partitions})
            if len(keys) > MAX_KEYS:
                log.warning(
                    "%d partitions of %s were written; only %d can be recorded on its asset, so "
                    "none is.", len(keys), dataset.name, MAX_KEYS,
                )  # fmt: skip
            elif keys:
                _add(context["outlet_events"][asset], keys)
                recorded[asset.uri] = keys
        except Exception as error:
            log.warning("Partitions of %s were not recorded on its asset: %s", dataset.name, error)
    return recorded


def _tell_of_default(recorded: Mapping[str, list[str]]) -> None:
    log.info(
        "Recorded partitions on outlet assets, because the DAG's schedule is PartitionedAtRuntime: "
        "%s. Each can start a run of each DAG that is scheduled on partitions of the asset; a DAG "
        "that is scheduled on the asset itself does not run for them. record_asset_partitions="
        "False switches this off.",
        "; ".join(f"{uri}: {some(keys, _MOST_NAMED)}" for uri, keys in recorded.items()),
    )


def _add(event: Any, keys: list[str]) -> None:
    if not hasattr(event, "add_partitions"):
        msg = "Airflow records partitions of assets from 3.3 on, and this is an older one."
        raise NotImplementedError(msg)
    event.add_partitions(keys)


def partition_key(partition: Partition, key_format: str | bool) -> str:
    """Write a partition as the key of an asset's partition.

    :param key_format: format of the key, e.g. ``"{dt}|{region}"``; True joins the values of the
        partition with ``|``
    :raise DeclarationError: if the format has a name that is not a dimension of the partition, or
        if the key is blank, too long, or has a character that a database of Airflow refuses
    """
    values = partition.as_dict()
    if not isinstance(key_format, str):
        key = "|".join(values.values())
    else:
        try:
            key = KEY_FIELD.sub(lambda m: values[m[1]], key_format)
        except KeyError as error:
            known = ", ".join(values) or "none"
            problem = f"record_asset_partitions={key_format!r} names {error}."
            fix = f"Dimensions are: {known}."
            raise DeclarationError(problem, fix) from error
    if not key.strip() or len(key) > MAX_KEY_LENGTH or _UNKEPT.search(key):
        msg = (
            f"{key!r} is no partition key: it must have 1 to {MAX_KEY_LENGTH} characters, all of "
            "which every database of Airflow can keep."
        )
        raise DeclarationError(msg)
    return key
