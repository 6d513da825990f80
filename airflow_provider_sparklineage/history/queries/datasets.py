"""Which dataset and which partition a text names; if none, what there is."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.facts.cells import cell_of_text
from airflow_provider_sparklineage.history.queries.frontier import meets
from airflow_provider_sparklineage.model.datasets import DEFAULT_NAMING, DatasetName, untrimmed
from airflow_provider_sparklineage.model.exceptions import UnknownNameError
from airflow_provider_sparklineage.model.texts import truncated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_provider_sparklineage.history.queries.rows import Rows

_LISTED = 10
_LONGEST = 300  # characters of a name in a message

_DATASETS = "SELECT DISTINCT namespace, name FROM accesses ORDER BY ALL"


def dataset_of(history: Rows, text: str) -> DatasetName:
    """Find the dataset that a text names.

    That is ``namespace:name``, a URI or a path, with partition folders or not, or the last parts of
    the name, ``sales.orders`` or ``orders``, if they are those of one dataset only.

    :raises UnknownNameError: there is none, or there are several
    """
    known = [DatasetName(row["namespace"], row["name"]) for row in history.rows(_DATASETS)]
    for found in (_exact(known, text), _by_uri(known, text), _by_end(known, text)):
        if len(found) == 1:
            return found[0]
        if found:
            msg = f"{text!r} is not one dataset: {_listed(_texts(found))}."
            raise UnknownNameError(msg, "Write one of them.")
    raise UnknownNameError(*_not_found(known, text))


def _exact(known: Iterable[DatasetName], text: str) -> list[DatasetName]:
    return [one for one in known if text in (f"{one.namespace}:{one.name}", str(one))]


def _by_uri(known: Iterable[DatasetName], text: str) -> list[DatasetName]:
    place = untrimmed(text)
    if place is None:
        return []
    names = {place.name, DEFAULT_NAMING.trim(place.name)}
    return [one for one in known if one.namespace == place.namespace and one.name in names]


def _by_end(known: Iterable[DatasetName], text: str) -> list[DatasetName]:
    end = text.strip("/")
    return [
        one
        for one in known
        if end and (one.name == end or one.name.endswith((f"/{end}", f".{end}")))
    ]


def _not_found(known: Sequence[DatasetName], text: str) -> tuple[str, str]:
    if not known:
        return "There is no dataset in the history.", "Build it: `sparklineage history build`."
    ends = {one.name.replace(".", "/").rpartition("/")[2]: one for one in known}
    last = text.replace(".", "/").rpartition("/")[2]
    texts = _texts(known)
    near = _texts(_near(ends, last))
    near += [one for one in difflib.get_close_matches(text, texts, 3) if one not in near]
    if near:
        return f"There is no dataset {text!r} in the history.", f"Similar: {_listed(near)}."
    return f"There is no dataset {text!r} in the history.", f"There are: {_listed(texts)}."


def _near(ends: dict[str, DatasetName], last: str) -> list[DatasetName]:
    return [ends[end] for end in difflib.get_close_matches(last, ends, 3)]


def _texts(known: Iterable[DatasetName]) -> list[str]:
    return [truncated(str(one), _LONGEST) for one in known]


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - _LISTED
    return ", ".join(texts[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")


_KNOWN = "namespace = $namespace AND name = $name AND cell IS NOT NULL"
_CELLS = f"""
SELECT cell, any_value(partition) AS partition, any_value(dims) AS dims FROM (
    SELECT cell, partition, dims FROM changes WHERE {_KNOWN}
    UNION ALL SELECT cell, partition, dims FROM bindings WHERE {_KNOWN}
) GROUP BY cell ORDER BY cell
"""
_SAME = " UNION ALL ".join(
    f"(SELECT 1 FROM {table} WHERE {_KNOWN} AND cell = $cell LIMIT 1)"
    for table in ("changes", "bindings")
)
_MEETING = " UNION ALL ".join(
    f"(SELECT 1 FROM {table} WHERE {_KNOWN} AND {meets('cell', '$cell')} LIMIT 1)"
    for table in ("changes", "bindings")
)


def cell_of(history: Rows, dataset: DatasetName, partition: str | None) -> str | None:
    """Find the cell that a text names: ``region=eu/dt=2024-10-15`` in any order, values escaped.

    Some of the dimensions are enough; they are all partitions that have these values.

    :raises UnknownNameError: there is no such partition; says which there are
    """
    if partition is None:
        return None
    found = cell_of_text(partition.strip("/"))
    if found is None:
        msg = f"{partition!r} is no partition."
        raise UnknownNameError(msg, "Write dt=2024-10-15, or dt=2024-10-15/region=eu.")
    cell, labels = found.cell, set(found.dims.split(","))
    asked = {"namespace": dataset.namespace, "name": dataset.name, "cell": cell}
    if history.rows(_SAME, asked) or (
        _has_dimensions(history, dataset, labels) and history.rows(_MEETING, asked)
    ):
        return cell
    raise UnknownNameError(*_no_partition(history, dataset, cell, labels))


_DIMS = " UNION ".join(
    f"SELECT DISTINCT dims FROM {table} WHERE {_KNOWN}" for table in ("changes", "bindings")
)


def _has_dimensions(history: Rows, dataset: DatasetName, labels: set[str]) -> bool:
    found = history.rows(_DIMS, dataset._asdict())
    return labels <= {label for row in found for label in row["dims"].split(",")}


def _no_partition(
    history: Rows, dataset: DatasetName, cell: str, labels: set[str]
) -> tuple[str, str]:
    rows = history.rows(_CELLS, dataset._asdict())
    name = str(dataset)
    if not rows:
        return f"No partition of {name} is known: it was written and read whole.", "Ask for all."
    known = {label for row in rows for label in row["dims"].split(",")}
    if unknown := sorted(labels - known):
        msg = f"{name} has no dimension {', '.join(unknown)}."
        return msg, f"It has {', '.join(sorted(known))}, as in {rows[0]['partition']}."
    by_cell = {row["cell"]: row["partition"] for row in rows}
    near = [by_cell[one] for one in _nearest(list(by_cell), cell)]
    texts = list(by_cell.values())
    msg = f"{name} has no partition {cell}: it has {len(texts):,}, {texts[0]} to {texts[-1]}."
    return msg, f"Nearest: {', '.join(near)}."


def _nearest(cells: Sequence[str], cell: str) -> list[str]:
    """Give the one before and the one after, in the order of texts; cells are in that order."""
    after = next((place for place, one in enumerate(cells) if one > cell), len(cells))
    return list(cells[max(after - 1, 0) : after + 1])
