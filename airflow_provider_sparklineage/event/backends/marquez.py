"""Marquez 0.51: the names that it can hold, the URLs of its pages, and the repairs of events.

Marquez checks little of an event, and stores it without a transaction. If a dataset's namespace has
a character that Marquez's ``NamespaceName`` does not allow, Marquez writes the name and then
answers with an error. From then on the lists of namespaces and jobs in Marquez answer 500, for
everybody and for good. So such a name must never get there (:meth:`Marquez.identity`).

The URL of a page contains percent-encoded names and a node id (``job:NAMESPACE:NAME``). Marquez
splits the node id again (``marquez.service.models.NodeId``), so the pages of some names that it
holds cannot be opened.

Marquez answers some parts of an event with an error, and others break it once they are stored.
These are repaired before the event is sent:

=========================================  =====================================================
part of an event                           repair
=========================================  =====================================================
NUL, or half of a surrogate pair, in text  taken out, for PostgreSQL holds neither
NaN and infinite numbers                   left out
a symlink whose namespace has characters   that symlink is left out; Marquez would fail for good at
that ``NamespaceName`` does not allow      each request for it
no ``dataSource``, or one without name     one with the name of the namespace is put in; without it
or URI                                     the list of sources fails for good, or the rest of the
                                           event is lost
a facet without ``_producer`` or           added; all of the event would be refused
``_schemaURL``, or with no URI in them
a schema's field without a name            left out; all of the event would be refused
a field's type or description that is      left out; all of the event would be refused
not text
a type of over 1,000 bytes                 truncated: an entry of an index must hold it
facets, columns of over 255 characters     left out
a column's source without dataset, field   left out
``transformationType`` over 255            truncated
an output with over 500 kB of facets       loses detail (:mod:`..steps.size`): the time to open
                                           its page grows with the square of the size
=========================================  =====================================================

A degradation in the event reports each repair but the additions, which lose nothing.

The page of a dataset shows the assertions and the description of whichever event named the dataset
last. So assertions about reads are moved to the outputs (:func:`_with_moved_assertions`).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from airflow_provider_sparklineage.event.assertions import (
    about,
    assertions_facet,
    entries_of,
    is_own,
)
from airflow_provider_sparklineage.event.backends.base import Backend
from airflow_provider_sparklineage.event.document import Walk, replaced, same
from airflow_provider_sparklineage.event.facets import declared
from airflow_provider_sparklineage.event.model import (
    ASSERTIONS_KEY,
    CAPTURE_KEY,
    COLUMNS_KEY,
    DOCUMENTATION_KEY,
    FRESHNESS_TEXTS,
    name_of,
)
from airflow_provider_sparklineage.event.steps.size import reduced
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.producer import facet as made_facet
from airflow_provider_sparklineage.model.producer import producer

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.event.document import Event, Facets


# --- texts that it can hold -----------------------------------------------------------------------


NOT_IN_NAMESPACES = re.compile(r"[^A-Za-z0-9:;=/_.@+-]")
"""Characters that ``marquez.common.models.NamespaceName`` refuses; Marquez reads all of its
namespaces as that class."""
MAX_NAMESPACE = 1024

_UNHELD = re.compile("[\\x00\\ud800-\\udfff]")


def held_text(text: str) -> str:
    """Remove the characters of a text that PostgreSQL cannot hold."""
    return _UNHELD.sub("", text) if _UNHELD.search(text) else text


# --- the backend ----------------------------------------------------------------------------------


# Marquez itself replaces these characters of a job's namespace.
_NOT_IN_JOB_NAMESPACES = re.compile(r"[^A-Za-z0-9:/_.@+-]")
# Marquez looks symlinks up by a varchar(255): two longer names with the same beginning would be
# one.
_MAX_NAME = 255
_DIGEST = 16


class Marquez(Backend):
    """Marquez, as of 0.51."""

    name = "marquez"
    title = "Marquez"
    versions_by_schema = True
    shows_descriptions = True
    pays_per_column = True
    pages_show = "latest run"

    def identity(self, dataset: DatasetName) -> DatasetName | None:
        """Replace the namespace's forbidden characters by ``_``, and long names' ends by checksums.

        :return: None if nothing would be left of the namespace or of the name
        """
        namespace, name = held_text(dataset.namespace), held_text(dataset.name)
        if not namespace.strip() or not name.strip():
            return None
        namespace = _with_checksum(NOT_IN_NAMESPACES.sub("_", namespace), MAX_NAMESPACE)
        return DatasetName(namespace, _with_checksum(name, _MAX_NAME))

    def text(self, text: str) -> str:
        """Remove the characters that PostgreSQL cannot hold."""
        return held_text(text)

    def repaired(self, event: Event) -> Event:
        """Repair an event by the table of this module; add degradations for the losses."""
        event = _with_moved_assertions(event)
        repairing = _Repairing()
        inputs = [repairing.dataset(d) for d in event["inputs"]]
        outputs = [repairing.dataset(d) for d in event["outputs"]]
        run_facets = repairing.facets(event["run"]["facets"], "the run")
        job_facets = repairing.facets(event["job"]["facets"], "the job")
        outputs = [repairing.sized(d) for d in outputs]
        repaired = replaced(
            event, inputs=inputs, outputs=outputs, run_facets=run_facets, job_facets=job_facets
        )
        return declared(repaired, repairing.notes)

    # --- pages ------------------------------------------------------------------------------------

    def job_page(self, web_url: str, namespace: str, name: str) -> str | None:
        """Give the URL of the graph around a job, with the details of the job open."""
        return _graph_page(web_url, "job", _NOT_IN_JOB_NAMESPACES.sub("_", namespace), name)

    def dataset_page(self, web_url: str, dataset: DatasetName) -> str | None:
        """Give the URL of the graph around a dataset, with the details of the dataset open."""
        return _graph_page(web_url, "dataset", *dataset)

    def columns_page(
        self, web_url: str, dataset: DatasetName, column: str | None = None
    ) -> str | None:
        """Give the URL of an output's column lineage; the page of a source would be empty."""
        names = (*dataset, column if column is not None else "column")
        # On the pages of columns, and only there, Marquez takes the text after a # for a version.
        if not _opens("datasetField", *names) or any("#" in name for name in names):
            return None
        page = _page_url(web_url, "datasets/column-level", *dataset)
        if column is None:
            return page
        node = quote(f"datasetField:{dataset.namespace}:{dataset.name}:{column}", safe="")
        return f"{page}?column={node}&columnName={quote(column, safe='')}&depth=2"


def _with_checksum(name: str, limit: int) -> str:
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: limit - _DIGEST - 1]}-{digest}"


def _graph_page(web_url: str, kind: str, namespace: str, name: str) -> str | None:
    if not _opens(kind, namespace, name):
        return None
    node = quote(f"{kind}:{namespace}:{name}", safe="")
    return f"{_page_url(web_url, f'lineage/{kind}', namespace, name)}?tableLevelNode={node}"


def _page_url(web_url: str, route: str, namespace: str, name: str) -> str:
    path = "/".join(quote(part, safe="") for part in (namespace, name))
    return f"{web_url.rstrip('/')}/{route}/{path}"


_LINE_BREAK = re.compile("[\n\r\x85\u2028\u2029]")
_DELIMITER = re.compile(r":(?!//|[0-9])")


def _opens(kind: str, *names: str) -> bool:
    """Whether Marquez can split the node id of these names into the same names.

    Marquez splits an id at its colons (and at ``#``); if that gives too many pieces, at the first
    colons that have neither ``//`` nor a digit after them. A name with ``%`` gives False, because
    Marquez's web application decodes URLs twice.

    :param kind: first piece of the node id: ``job``, ``dataset`` or ``datasetField``
    :param names: the other pieces: the namespace, the name, and for a column also its name
    """
    node = ":".join((kind, *names))
    if "%" in node or _LINE_BREAK.search(node) or not all(map(str.strip, names)):
        return False
    pieces = re.split("[:#]", node)
    if len(pieces) > len(names) + 1:
        pieces = _DELIMITER.split(node, maxsplit=len(names))
    return pieces == [kind, *names]


# --- assertions -----------------------------------------------------------------------------------


_DOCUMENTATION = "https://openlineage.io/spec/facets/1-1-0/DocumentationDatasetFacet.json"


def _with_moved_assertions(event: Event) -> Event:
    """Move this package's assertions on inputs to where they hide nothing that a writer sent.

    A reader's assertions would replace those of the task that wrote the dataset, and an input
    without a description takes the dataset's description away. So all outputs get the assertions
    on the inputs: what a job has read is about the data that it made. In an event without outputs
    an assertion stays if it failed and is about the dataset itself: then the page is red until the
    dataset is written again. The others are in the run facet ``test`` alone. Assertions of other
    producers stay as they are.

    :return: the same object if there is nothing to move
    """
    if not any(any(map(is_own, entries_of(_of_input(d)))) for d in event["inputs"]):
        return event
    if not event["outputs"]:
        inputs = [left for d in event["inputs"] if (left := _with_own_failures(d)) is not None]
        return replaced(event, inputs=inputs)
    moved = [
        {**entry, "assertion": about(entry["assertion"], str(name_of(dataset)))}
        for dataset in event["inputs"]
        for entry in filter(is_own, entries_of(_of_input(dataset)))
    ]
    inputs = [_without_own_assertions(dataset) for dataset in event["inputs"]]
    return replaced(event, inputs=inputs, outputs=[_with(d, moved) for d in event["outputs"]])


def _of_input(dataset: dict[str, Any]) -> Facets:
    facets: Facets = dataset.get("inputFacets", {})
    return facets


def _without_own_assertions(dataset: dict[str, Any]) -> dict[str, Any]:
    facets = _of_input(dataset)
    entries = entries_of(facets)
    others = [entry for entry in entries if not is_own(entry)]
    if len(others) == len(entries):
        return dataset
    left = {key: facet for key, facet in facets.items() if key != ASSERTIONS_KEY}
    return {**dataset, "inputFacets": left | assertions_facet(others)}


def _with(output: dict[str, Any], moved: list[dict[str, Any]]) -> dict[str, Any]:
    facets = output["facets"]
    return {**output, "facets": facets | assertions_facet([*entries_of(facets), *moved])}


def _with_own_failures(dataset: dict[str, Any]) -> dict[str, Any] | None:
    """Leave of the package's assertions only the failed ones on the input itself; describe it so.

    :return: None if nothing is left but the name, which would take the description away
    """
    own = [entry for entry in entries_of(_of_input(dataset)) if is_own(entry)]
    failed = [
        entry for entry in own if not entry.get("success") and entry["assertion"] in FRESHNESS_TEXTS
    ]
    left = _without_own_assertions(dataset)
    if not failed:
        is_of_check = any(entry["assertion"] in FRESHNESS_TEXTS for entry in own)
        return None if is_of_check and not left["facets"] and not left["inputFacets"] else left
    text = failed[0].get("actual", "") or failed[0]["assertion"]
    described = {DOCUMENTATION_KEY: made_facet(_DOCUMENTATION, description=text)} | left["facets"]
    entries = [*entries_of(left["inputFacets"]), *failed]
    return {
        **left,
        "facets": described,
        "inputFacets": left["inputFacets"] | assertions_facet(entries),
    }


# --- repairs --------------------------------------------------------------------------------------


MAX_OUTPUT_BYTES = 500_000
"""Limit of one output's facets: a dataset's page opens in 0.2 s with 0.8 MB, in 7 s with 4.5 MB."""

_MAX_COLUMN = 255
"""Characters in Marquez's own columns for names of facets and fields, and for kinds of edges."""
_MAX_TYPE = 1000
"""Bytes of a type; an entry of Marquez's index of fields has 2,704 for the name and the type."""
_MAX_LIFECYCLE_STATE = 63

_BASE = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/BaseFacet"
_DATA_SOURCE = "https://openlineage.io/spec/facets/1-0-1/DatasourceDatasetFacet.json"

_PART = r"(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})"
_URI = re.compile(
    rf"(?:[A-Za-z][A-Za-z0-9+.-]*:/{{0,3}}|/?(?![^/?#]*:)){_PART}(?:{_PART}|[/:])*"
    rf"(?:[?](?:{_PART}|[/:?])*)?(?:#(?:{_PART}|[/:?])*)?"
)
"""Matches only texts that ``java.net.URI`` takes, though not all of them."""


class _Repairing:
    """Repairs the parts of an event; gives the same object for a part that needs no repair."""

    def __init__(self) -> None:
        self.notes: list[Degradation] = []

    def _note(self, loss: str, dataset: DatasetName | None = None) -> None:
        message = f"{loss}, because Marquez cannot take it."
        self.notes.append(Degradation(DegradationCode.BACKEND_REPAIRED, message, dataset))

    # --- datasets ---------------------------------------------------------------------------------

    def dataset(self, dataset: dict[str, Any]) -> dict[str, Any]:
        name = name_of(dataset)
        facets = self.facets(dataset["facets"], str(name), name)
        fixed = {key: self._modelled(key, facet, name) for key, facet in facets.items()}
        fixed = {key: facet for key, facet in fixed.items() if facet is not None}
        if "dataSource" not in fixed:
            is_uri = _is_uri(name.namespace)
            uri = name.namespace if is_uri else f"urn:{quote(name.namespace, safe='')}"
            fixed["dataSource"] = made_facet(_DATA_SOURCE, name=name.namespace, uri=uri)
        repaired = dataset if same(fixed, dataset["facets"]) else {**dataset, "facets": fixed}
        for side in ("inputFacets", "outputFacets"):
            of_side = dataset.get(side, {})
            repaired_side = self.facets(of_side, str(name), name)
            if repaired_side is not of_side:
                repaired = {**repaired, side: repaired_side}
        return repaired

    def facets(self, facets: Facets, owner: str, dataset: DatasetName | None = None) -> Facets:
        """Repair texts and numbers in facets of any kind; drop facets whose name is too long.

        :param owner: the dataset, run or job of the facets, as a degradation names it
        :param dataset: the dataset of the facets; None for a run or a job
        """
        fixed = {}
        for key, facet in facets.items():
            if len(key) > _MAX_COLUMN:
                self._note(f"The facet {key[:40]}… of {owner} was left out", dataset)
                continue
            cleaned = facet if _is_holdable(facet) else _HOLDABLE.value(facet)
            # The capture facet is an exception: renaming has declared each name in it that changes.
            if cleaned is not facet and key != CAPTURE_KEY:
                self._note(f"Characters of the facet {key} of {owner} were left out", dataset)
            fixed[key] = cleaned
        return facets if same(fixed, facets) else fixed

    def sized(self, output: dict[str, Any]) -> dict[str, Any]:
        """Drop detail of an output whose page would take too long to open.

        :param output: the output as the event has it, with the keys ``facets`` and ``outputFacets``
        :return: the same object if its page does not take too long
        """
        alone = {"inputs": [], "outputs": [output], "run": {"facets": {}}, "job": {"facets": {}}}
        fits, dropped = reduced(alone, MAX_OUTPUT_BYTES, "a page of Marquez")
        if not dropped:
            return output
        name = name_of(output)
        message = (
            f"Detail of {name} was left out: Marquez takes seconds and more to open the page of a "
            f"dataset whose facets have over {MAX_OUTPUT_BYTES // 1000} kB."
        )
        self.notes.append(Degradation(DegradationCode.BACKEND_REPAIRED, message, name))
        smaller: dict[str, Any] = fits["outputs"][0]
        return smaller

    # --- facets that Marquez has classes for ------------------------------------------------------

    def _modelled(self, key: str, facet: Any, name: DatasetName) -> Any:
        if key == COLUMNS_KEY:
            return self._columns(facet, name)
        if key not in _IS_COMPLETE:
            return facet
        if not isinstance(facet, dict) or not _IS_COMPLETE[key](facet):
            self._note(f"The facet {key} of {name}, which is not complete, was left out", name)
            return None
        if key == "schema":
            facet = self._schema(facet, name)
        elif key == "symlinks":
            held = [i for i in facet["identifiers"] if isinstance(i, dict) and _is_link(i)]
            facet = self._fewer(facet, "identifiers", held, f"symlinks of {name}", name)
        missing = {"_producer": producer(), "_schemaURL": _BASE}
        missing = {k: v for k, v in missing.items() if not _is_uri(facet.get(k))}
        return facet | missing if missing else facet

    def _schema(self, facet: dict[str, Any], name: DatasetName) -> dict[str, Any]:
        fields = facet.get("fields")
        if fields is None:
            return facet
        held = [f for f in fields if isinstance(f, dict) and _is_held(f.get("name"))]
        facet = self._fewer(facet, "fields", held, f"columns of the schema of {name}", name)
        typed = [_with_held_type(f) for f in held]
        if changed := sum(a is not b for a, b in zip(typed, held, strict=True)):
            self._note(f"Types or descriptions of {changed} columns of {name} were cut", name)
            return facet | {"fields": typed}
        return facet

    def _fewer(
        self, facet: dict[str, Any], key: str, held: list[Any], parts: str, name: DatasetName
    ) -> dict[str, Any]:
        gone = len(facet[key]) - len(held)
        if not gone:
            return facet
        self._note(f"{gone} {parts} were left out", name)
        return facet | {key: held}

    # --- column lineage ---------------------------------------------------------------------------

    def _columns(self, facet: dict[str, Any], name: DatasetName) -> dict[str, Any]:
        gone: Counter[str] = Counter()

        def held_sources(sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
            held = [s for s in sources if s["namespace"] and s["name"] and _is_held(s["field"])]
            gone["sources"] += len(sources) - len(held)
            return held if len(held) < len(sources) else sources

        fields = {}
        for column, field in facet["fields"].items():
            if not _is_held(column):
                gone["columns"] += 1
                continue
            inputs, kind = held_sources(field["inputFields"]), field["transformationType"]
            fixed = {**field, "inputFields": inputs, "transformationType": kind[:_MAX_COLUMN]}
            fields[column] = field if same(fixed, field) else fixed  # a short text is its own start
        dataset = held_sources(facet["dataset"])
        for parts, count in gone.items():
            if count:
                self._note(f"{count} {parts} of the column lineage of {name} were left out", name)
        if same(fields, facet["fields"]) and dataset is facet["dataset"]:
            return facet
        return {**facet, "fields": fields, "dataset": dataset}


_IS_COMPLETE: dict[str, Callable[[dict[str, Any]], bool]] = {
    "schema": lambda facet: isinstance(facet.get("fields"), list | None),
    "symlinks": lambda facet: isinstance(facet.get("identifiers"), list),
    "documentation": lambda facet: isinstance(facet.get("description"), str),
    "dataSource": lambda facet: _is_held(facet.get("name"), math.inf) and _is_uri(facet.get("uri")),
    "lifecycleStateChange": lambda facet: _is_state(facet.get("lifecycleStateChange")),
    "description": lambda _: False,  # Marquez wants a text here, but each facet is an object
}
"""The facets that Marquez decodes into classes of its own; it refuses events that do not fit."""


def _is_state(state: object) -> bool:
    return isinstance(state, str) and len(state) <= _MAX_LIFECYCLE_STATE


def _is_held(name: object, limit: float = _MAX_COLUMN) -> bool:
    return isinstance(name, str) and bool(name.strip()) and len(name) <= limit


def _is_uri(text: object) -> bool:
    return isinstance(text, str) and bool(_URI.fullmatch(text))


def _with_held_type(field: dict[str, Any]) -> dict[str, Any]:
    """Give a schema's field with texts that Marquez can hold; the same object if it has them."""
    others = {
        key: value
        for key, value in field.items()
        if key not in ("type", "description") or not isinstance(value, (list, dict))
    }
    kind = others.get("type")
    if isinstance(kind, str) and len(kind.encode()) > _MAX_TYPE:
        others["type"] = kind.encode()[: _MAX_TYPE - 3].decode(errors="ignore") + "…"
    return field if same(others, field) else others


def _is_link(identifier: dict[str, Any]) -> bool:
    namespace, kind = identifier.get("namespace"), identifier.get("type")
    return (
        isinstance(namespace, str)
        and 0 < len(namespace) <= MAX_NAMESPACE
        and not NOT_IN_NAMESPACES.search(namespace)
        and _is_held(identifier.get("name"))
        and (kind is None or (isinstance(kind, str) and len(kind) <= _MAX_COLUMN))
    )


# --- texts and numbers in facets ------------------------------------------------------------------


def _is_holdable(facet: Any) -> bool:
    """Whether it is certain that no text or number in a facet needs a repair.

    Only the facet's JSON is searched, where NaN and infinite numbers are null: that is far cheaper
    than a :class:`.Walk`. So the result is False also for some facets that need no repair.
    """
    try:
        text = msgspec.json.encode(facet)
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return b"null" not in text and rb"\u0000" not in text


_HOLDABLE = Walk(
    lambda text, _key: held_text(text),
    number=lambda number: number if math.isfinite(number) else None,
    key=held_text,
)
