"""Marquez 0.51: names that it can hold, and the URLs of its pages.

Marquez checks little of what it is sent and has no transactions. A dataset's namespace with a
character outside of those of its own ``NamespaceName`` is answered with an error after the name has
been written, and from then on the lists of namespaces and jobs answer 500, for everybody and for
good. So such names must never get there. What else it cannot take is in :mod:`.marquez_repairs`.

Pages are addressed by names, percent-encoded, and by node ids (``job:NAMESPACE:NAME``), which it
takes apart again (``marquez.service.models.NodeId``): some names that it holds cannot be opened.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow_provider_sparklineage.event.backends.base import Backend
from airflow_provider_sparklineage.event.backends.marquez_names import (
    MAX_NAMESPACE,
    NOT_IN_NAMESPACES,
    held_text,
)
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.document import Event

# What it makes of a job's namespace by itself.
_NOT_IN_JOB_NAMESPACES = re.compile(r"[^A-Za-z0-9:/_.@+-]")
# Symlinks are looked up by a varchar(255): of longer names, two with one beginning are the same.
_MAX_NAME = 255
_DIGEST = 16


class Marquez(Backend):
    """Marquez, as of 0.51."""

    name = "marquez"
    title = "Marquez"
    versions_by_schema = True
    shows_descriptions = True
    pays_per_column = True

    def identity(self, dataset: DatasetName) -> DatasetName | None:
        """Replace characters of the namespace, and shorten what is too long, by a checksum.

        None if nothing would be left of either.
        """
        namespace, name = held_text(dataset.namespace), held_text(dataset.name)
        if not namespace.strip() or not name.strip():
            return None
        namespace = _truncated(NOT_IN_NAMESPACES.sub("_", namespace), MAX_NAMESPACE)
        return DatasetName(namespace, _truncated(name, _MAX_NAME))

    def text(self, text: str) -> str:
        """Take out what PostgreSQL cannot hold."""
        return held_text(text)

    def repaired(self, event: Event) -> Event:
        """See :mod:`.marquez_repairs`."""
        # Not needed for links, which a task pushes before its job starts.
        from airflow_provider_sparklineage.event.backends.marquez_repairs import repaired

        return repaired(event)

    # --- pages ------------------------------------------------------------------------------------

    def job_page(self, web_url: str, namespace: str, name: str) -> str | None:
        """Link to the graph of a job, with its drawer open."""
        namespace = _NOT_IN_JOB_NAMESPACES.sub("_", namespace)
        if not _opens("job", namespace, name):
            return None
        node = quote(f"job:{namespace}:{name}", safe="")
        return f"{_page(web_url, 'lineage/job', namespace, name)}?tableLevelNode={node}"

    def dataset_page(self, web_url: str, dataset: DatasetName) -> str | None:
        """Link to the graph around a dataset, with its drawer open."""
        if not _opens("dataset", *dataset):
            return None
        node = quote(f"dataset:{dataset.namespace}:{dataset.name}", safe="")
        return f"{_page(web_url, 'lineage/dataset', *dataset)}?tableLevelNode={node}"

    def columns_page(
        self, web_url: str, dataset: DatasetName, column: str | None = None
    ) -> str | None:
        """Link to the column lineage of an output; a source has an empty page."""
        names = (*dataset, column if column is not None else "column")
        # What follows a # is taken for a version, on the pages of columns only.
        if not _opens("datasetField", *names) or any("#" in name for name in names):
            return None
        page = _page(web_url, "datasets/column-level", *dataset)
        if column is None:
            return page
        node = quote(f"datasetField:{dataset.namespace}:{dataset.name}:{column}", safe="")
        return f"{page}?column={node}&columnName={quote(column, safe='')}&depth=2"


def _truncated(name: str, limit: int) -> str:
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: limit - _DIGEST - 1]}-{digest}"


def _page(web_url: str, route: str, namespace: str, name: str) -> str:
    path = "/".join(quote(part, safe="") for part in (namespace, name))
    return f"{web_url.rstrip('/')}/{route}/{path}"


_LINE_BREAK = re.compile("[\n\r\x85\u2028\u2029]")
_DELIMITER = re.compile(r":(?!//|[0-9])")


def _opens(kind: str, *names: str) -> bool:
    """Whether Marquez finds these names again in the node id that it makes of them.

    It splits an id at its colons (and at ``#``); if that gives too many pieces, at the first colons
    that have neither ``//`` nor a digit after them. The web application decodes URLs twice.
    """
    node = ":".join((kind, *names))
    if "%" in node or _LINE_BREAK.search(node) or not all(map(str.strip, names)):
        return False
    pieces = re.split("[:#]", node)
    if len(pieces) > len(names) + 1:
        pieces = _DELIMITER.split(node, maxsplit=len(names))
    return pieces == [kind, *names]
