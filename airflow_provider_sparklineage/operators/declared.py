"""The fields of an operator that name datasets; :mod:`.expectations.declared` reads them.

Here is what needs Airflow: which datasets its assets, inlets and outlets are.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.providers.common.compat.sdk import Asset
from msgspec.structs import replace
from openlineage.client.event_v2 import Dataset

from airflow_provider_sparklineage.expectations import declared as declarations
from airflow_provider_sparklineage.expectations.declared import Declared, TaskFields
from airflow_provider_sparklineage.expectations.references import SCHEMES
from airflow_provider_sparklineage.model.credentials import logger, scrub_name
from airflow_provider_sparklineage.model.datasets import DatasetName, Naming
from airflow_provider_sparklineage.model.locations import Locator
from airflow_provider_sparklineage.operators.masking import masked, masked_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_provider_sparklineage.model.rules import PartitionRules
    from airflow_provider_sparklineage.templates import TracedText

log = logger(__name__)


def declared(
    operator: Any,
    texts: Sequence[TracedText],
    rules: PartitionRules,
    partition_key: str | None = None,
    naming: Mapping[str, str] | None = None,
) -> Declared:
    """Find the datasets that the rendered fields of an operator name, and what is expected.

    :param texts: its traced texts
    :param partition_key: of the run
    :param naming: Spark properties of the submission; None: those that the operator has itself
    """
    conf = {str(k): str(v) for k, v in operator.spark_properties.items()}
    own_naming = naming_properties(conf if naming is None else naming)
    locator = Locator(Naming.of(own_naming), rules)
    task = TaskFields(
        texts,
        _datasets(operator.inlets, locator),
        _datasets(operator.outlets, locator),
        operator.reads,
        operator.writes,
        partition_key,
        operator.partition_key_dimensions,
    )
    found = declarations.declared(task, locator, partial(_dataset, locator=locator))
    return replace(_without_secrets(found), naming=own_naming)


def _without_secrets(found: Declared) -> Declared:
    """Leave out what Airflow masks, before it is compared, kept in the bundle or sent.

    A masked value could be compared with nothing: the observed one is not masked yet.
    """
    kept, problems = [], list(found.problems)
    for expectation in found.expectations:
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
    return replace(found, expectations=tuple(kept), problems=tuple(dict.fromkeys(problems)))


def naming_properties(conf: Mapping[str, str]) -> dict[str, str]:
    """Choose the Spark properties that change how the listener names datasets."""
    return {k: v for k, v in conf.items() if k.startswith("spark.openlineage.dataset.")}


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
    """Name the dataset that an asset is, as its URI in a string; None where nobody knows."""
    if urlsplit(asset.uri).scheme in SCHEMES:
        location = locator.locate(asset.uri, may_be_file=True)
        return location.dataset if location else None
    from airflow.providers.openlineage.utils.utils import translate_airflow_asset

    found = translate_airflow_asset(asset, None)
    return DatasetName(found.namespace, found.name) if found is not None else None


def _dataset(entry: object, locator: Locator) -> DatasetName | None:
    found = _named(entry, locator)
    return found and DatasetName(scrub_name(found.namespace), scrub_name(found.name))


def _named(entry: object, locator: Locator) -> DatasetName | None:
    if isinstance(entry, Dataset):
        return DatasetName(entry.namespace, entry.name)
    if isinstance(entry, Asset):
        return asset_name(entry, locator)
    from airflow.providers.openlineage.extractors.manager import ExtractorManager

    found = ExtractorManager.convert_to_ol_dataset(entry)
    return DatasetName(found.namespace, found.name) if found is not None else None
