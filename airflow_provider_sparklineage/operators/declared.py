"""What a task says of itself (declarations, templates, partition key) to names and expectations."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from airflow.providers.common.compat.sdk import Asset
from openlineage.client.event_v2 import Dataset

from airflow_provider_sparklineage.expectations import (
    DatasetSubset,
    Expectation,
    Side,
    derivation,
)
from airflow_provider_sparklineage.expectations.declarations import listed
from airflow_provider_sparklineage.expectations.references import references
from airflow_provider_sparklineage.expectations.references.texts import SCHEMES
from airflow_provider_sparklineage.model.datasets import DatasetName, Naming
from airflow_provider_sparklineage.model.exceptions import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_provider_sparklineage.model.rules import PartitionRules
    from airflow_provider_sparklineage.templates import TracedText

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Declared:
    """What is known of a task's datasets before its job runs.

    :param problems: sentences on what cannot be understood
    :param naming: Spark properties that change how the listener names datasets
    """

    inputs: tuple[DatasetName, ...] = ()
    outputs: tuple[DatasetName, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    problems: tuple[str, ...] = ()
    naming: Mapping[str, str] = field(default_factory=dict)


def declared(
    operator: Any,
    texts: Sequence[TracedText],
    rules: PartitionRules,
    partition_key: str | None = None,
    naming: Mapping[str, str] | None = None,
) -> Declared:
    """Tell what an operator with rendered fields says of its datasets.

    :param texts: its traced texts
    :param partition_key: of the run
    :param naming: Spark properties of the submission; None: those that the operator has itself
    """
    conf = {str(k): str(v) for k, v in (operator.conf or {}).items()}
    own_naming = naming_properties(conf if naming is None else naming)
    mirrored = Naming.of(own_naming)
    found = _Finding(mirrored, rules, texts)
    inputs = [*_identities(operator.inlets), *found.add("reads", operator.reads, Side.READ)]
    outputs = [*_identities(operator.outlets), *found.add("writes", operator.writes, Side.WRITE)]
    own = [t for t in texts if not t.field.startswith(("reads", "writes"))]
    found.expectations += derivation.from_arguments(own, mirrored, rules)
    found.add_key(partition_key, operator.partition_key_dimensions)
    return Declared(
        tuple(dict.fromkeys(inputs)),
        tuple(dict.fromkeys(outputs)),
        tuple(found.expectations),
        tuple(found.problems),
        own_naming,
    )


def naming_properties(conf: Mapping[str, str]) -> dict[str, str]:
    """Choose the Spark properties that change how the listener names datasets."""
    return {k: v for k, v in conf.items() if k.startswith("spark.openlineage.dataset.")}


class _Finding:
    def __init__(self, naming: Naming, rules: PartitionRules, texts: Sequence[TracedText]) -> None:
        self._naming = naming
        self._rules = rules
        self._texts = texts
        self.expectations: list[Expectation] = []
        self.problems: list[str] = []
        if unmirrored := [*naming.unknown_trimmers, *filter(None, [naming.unusable_pattern])]:
            self.problems.append(
                "Datasets cannot be named here as the listener names them, because of "
                f"{', '.join(unmirrored)}; expected partitions may not meet their datasets."
            )

    def add(self, name: str, entries: object, side: Side) -> list[DatasetName]:
        """Add ``reads`` or ``writes``; return the datasets that have a name."""
        names = []
        for number, entry in enumerate(listed(entries)):
            subset = entry if isinstance(entry, DatasetSubset) else DatasetSubset(entry)
            if _is_unrendered(subset):
                continue  # its template could not be rendered, so it names nothing
            texts = [t for t in self._texts if t.field.startswith(f"{name}[{number}]")]
            try:
                identity = self._add(subset, side, texts)
            except DeclarationError as error:
                self.problems.append(f"{name}[{number}]: {error}")
                continue
            if isinstance(identity, DatasetName):
                names.append(identity)
        return names

    def _add(
        self, subset: DatasetSubset, side: Side, texts: Sequence[TracedText]
    ) -> DatasetName | str:
        identity: DatasetName | str | None
        reference = None
        if not isinstance(subset.dataset, str):
            identity = _identity(subset.dataset)
        elif named := references(subset.dataset, self._naming, self._rules):
            reference = named[0]
            identity = reference.dataset
        else:
            identity = _table(subset.dataset)
        if identity is None:
            msg = f"No OpenLineage dataset is known for {subset.dataset!r}."
            raise DeclarationError(msg)
        expectation = derivation.declared(side, identity, subset, texts, self._rules, reference)
        _require_sayable(expectation)
        self.expectations.append(expectation)
        return identity

    def add_key(self, key: str | None, dimensions: str | Sequence[str] | None) -> None:
        if not key or not dimensions:
            return
        try:
            self.expectations += derivation.from_partition_key(key, dimensions)
        except DeclarationError as error:
            self.problems.append(str(error))


# catalog.namespace.table, with or without backquotes
_TABLE = re.compile(r"(`[^`]+`|[\w-]+)(\.(`[^`]+`|[\w-]+)){0,3}")


def _table(text: str) -> str:
    if "://" in text and "@" in text:
        msg = "a URI must not have a user's name and password in it."
        raise DeclarationError(msg)
    if not _TABLE.fullmatch(text.strip()):
        msg = (
            f"{text!r} names no dataset; it must be a URI that Spark reads (s3a://…, file:///…), "
            "an absolute path, a table (schema.table) or an asset."
        )
        raise DeclarationError(msg)
    return text.strip()


def _require_sayable(expectation: Expectation) -> None:
    """Refuse what the manifest and the event cannot hold."""
    try:
        msgspec.json.encode(expectation)
    except (TypeError, ValueError) as error:  # half of a surrogate pair is the latter
        msg = f"it cannot be written as JSON ({error})."
        raise DeclarationError(msg) from error


def _is_unrendered(subset: DatasetSubset) -> bool:
    return subset.template is None and any(mark in repr(subset) for mark in ("{{", "{%"))


def _identities(entries: Iterable[object]) -> list[DatasetName]:
    """Name ``inlets`` or ``outlets``: they give identity, and no part of a dataset."""
    names = []
    for entry in entries:
        name = _identity(entry)
        if name is None:
            log.info("No OpenLineage dataset is known for %r; it is left out.", entry)
        else:
            names.append(name)
    return names


def asset_name(asset: Asset) -> DatasetName | None:
    """Name the dataset that an asset is, as the listener would; None where nobody knows."""
    if urlsplit(asset.uri).scheme in SCHEMES:
        return Naming().name(asset.uri)
    from airflow.providers.openlineage.utils.utils import translate_airflow_asset

    found = translate_airflow_asset(asset, None)
    return DatasetName(found.namespace, found.name) if found is not None else None


def _identity(entry: object) -> DatasetName | None:
    if isinstance(entry, Dataset):
        return DatasetName(entry.namespace, entry.name)
    if isinstance(entry, Asset):
        return asset_name(entry)
    from airflow.providers.openlineage.extractors.manager import ExtractorManager

    found = ExtractorManager.convert_to_ol_dataset(entry)
    return DatasetName(found.namespace, found.name) if found is not None else None
