"""The subject of a question: the dataset, partition or column that a text names, and its versions.

If a text names no dataset, partition or column, the error lists existing names.
"""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections import defaultdict
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.history.facts.cells import cell_of_text
from airflow_provider_sparklineage.history.queries import sql
from airflow_provider_sparklineage.history.queries.answers import of_tables, values_of
from airflow_provider_sparklineage.history.queries.patterns.axes import FORMATS
from airflow_provider_sparklineage.model.datasets import (
    DEFAULT_NAMING,
    PARTS,
    DatasetName,
    short_names,
    untrimmed,
)
from airflow_provider_sparklineage.model.exceptions import UnknownNameError
from airflow_provider_sparklineage.model.texts import did_you_mean, some, truncated
from airflow_provider_sparklineage.model.timestamps import to_datetime, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime


_LISTED_NAMES = 10
_LONGEST = 300  # characters of a name in a message

_DATASETS = "SELECT DISTINCT namespace, name FROM accesses ORDER BY ALL"


def dataset_of(history: sql.Rows, text: str) -> DatasetName:
    """Find the dataset that a text names.

    The text is ``namespace:name``, a URI or a path, with or without partition folders. It can also
    be the last parts of the name, ``sales.orders`` or ``orders``, if only one dataset's name ends
    with them.

    :param history: an opened store of the history
    :raises UnknownNameError: no dataset has this name, or several have
    """
    known = _known(history)
    for matching in (_exact(known, text), _by_uri(known, text), _by_end(known, text)):
        if len(matching) == 1:
            return matching[0]
        if matching:
            msg = f"{text!r} is not one dataset: {some(matching, _LISTED_NAMES, _label)}."
            raise UnknownNameError(msg, "Write one of them.")
    if not known:
        problem = "There is no dataset in the history."
        raise UnknownNameError(problem, "Build it: `sparklineage history build`.")
    problem = f"There is no dataset {text!r} in the history."
    if near := _near(known, text):
        raise UnknownNameError(problem, near)
    raise UnknownNameError(problem, f"There are: {some(known, _LISTED_NAMES, _label)}.")


def names_in(history: sql.Rows) -> dict[DatasetName, str]:
    """Give the shortest name of each dataset of the store by which :func:`dataset_of` finds it."""
    return short_names(_known(history), PARTS)


def _known(history: sql.Rows) -> list[DatasetName]:
    return [DatasetName(row["namespace"], row["name"]) for row in history.rows(_DATASETS)]


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
        if end and (one.name == end or str(one).endswith((f"/{end}", f".{end}")))
    ]


def _near(known: Sequence[DatasetName], text: str) -> str:
    """Ask whether a dataset with a similar name was wanted; empty if there is none.

    Names whose last part is similar count first.

    :param known: all datasets in the store
    :param text: the text that names no dataset
    """
    ends: dict[str, list[str]] = defaultdict(list)
    for one, name in short_names(known, PARTS).items():
        ends[_last_part(one.name)].append(truncated(name, _LONGEST))
    names = {end: some(sorted(of_end), _LISTED_ENDS) for end, of_end in ends.items()}
    of_ends = did_you_mean(_last_part(text), names, names.__getitem__)
    return of_ends or did_you_mean(text, map(_label, known))


_LISTED_ENDS = 3


def _last_part(name: str) -> str:
    return name.replace(".", "/").rpartition("/")[2]


def _label(dataset: DatasetName) -> str:
    return truncated(str(dataset), _LONGEST)


_KNOWN = "namespace = $namespace AND name = $name AND cell IS NOT NULL"
_CELLS = f"""
SELECT cell, any_value(partition) AS partition, any_value(dims) AS dims FROM (
    SELECT cell, partition, dims FROM changes WHERE {_KNOWN}
    UNION ALL SELECT cell, partition, dims FROM bindings WHERE {_KNOWN}
) GROUP BY cell ORDER BY cell
"""
_IS_CELL = " UNION ALL ".join(
    f"(SELECT 1 FROM {table} WHERE {_KNOWN} AND cell = $cell LIMIT 1)"
    for table in ("changes", "bindings")
)
_MEETING = f"""
SELECT dims, bool_or({sql.meets("cell", "$cell")}) AS is_any FROM (
    SELECT cell, dims FROM changes WHERE {_KNOWN}
    UNION SELECT cell, dims FROM bindings WHERE {_KNOWN}
) GROUP BY dims
"""


def cell_of(history: sql.Rows, dataset: DatasetName, partition: str | None) -> str | None:
    """Give the canonical text (the *cell*) of the partition that a text names.

    The text is ``region=eu/dt=2024-10-15``: the dimensions may be in any order, and the values are
    escaped. A text with only some of the dimensions stands for all partitions with these values.

    :param history: an opened store of the history
    :param dataset: the dataset that has the partition
    :return: the dimensions sorted by name: ``dt=2024-10-15/region=eu``; None if ``partition`` is
        None
    :raises UnknownNameError: there is no such partition; the error names dimensions or partitions
        that exist
    """
    if partition is None:
        return None
    parsed = cell_of_text(partition.strip("/"))
    if parsed is None:
        msg = f"{partition!r} is no partition."
        raise UnknownNameError(msg, "Write dt=2024-10-15, or dt=2024-10-15/region=eu.")
    cell, labels = parsed.cell, set(parsed.dims.split(","))
    parameters = {**dataset._asdict(), "cell": cell}
    if history.rows(_IS_CELL, parameters):
        return cell
    shapes = history.rows(_MEETING, parameters)
    unknown = labels.difference(*(row["dims"].split(",") for row in shapes))
    if not unknown and any(row["is_any"] for row in shapes):
        return cell
    raise UnknownNameError(*_no_partition(history, dataset, cell, sorted(unknown)))


def partitions_of(history: sql.Rows, dataset: DatasetName) -> list[str]:
    """Give the partitions of a dataset as :func:`cell_of` takes them, in the order of their names.

    :param history: an opened store of the history
    """
    return [row["partition"] for row in history.rows(_CELLS, dataset._asdict())]


def _no_partition(
    history: sql.Rows, dataset: DatasetName, cell: str, unknown: Sequence[str]
) -> tuple[str, str]:
    rows = history.rows(_CELLS, dataset._asdict())
    name = str(dataset)
    if not rows:
        return f"No partition of {name} is known: it was written and read whole.", "Ask for all."
    if unknown:
        known = {label for row in rows for label in row["dims"].split(",")}
        msg = f"{name} has no dimension {', '.join(unknown)}."
        return msg, f"It has {', '.join(sorted(known))}, as in {rows[0]['partition']}."
    by_cell = {row["cell"]: row["partition"] for row in rows}
    near = [by_cell[one] for one in _nearest(list(by_cell), cell)]
    texts = list(by_cell.values())
    msg = f"{name} has no partition {cell}: it has {len(texts):,}, {texts[0]} to {texts[-1]}."
    return msg, f"Nearest: {', '.join(near)}."


def _nearest(cells: Sequence[str], cell: str) -> list[str]:
    """Give the two partitions between which a partition would be sorted; at an end, only one.

    :param cells: canonical texts of partitions, sorted as texts
    :param cell: canonical text of the partition to sort
    """
    after = bisect_right(cells, cell)
    return list(cells[max(after - 1, 0) : after + 1])


_LISTED_COLUMNS = 20
_IS_COLUMN_WRITTEN = f"""
WITH f AS ({sql.table_of(*sql.RUN)})
SELECT 1 FROM columns AS c JOIN f ON c.ended = f.ended AND c.run_id = f.run_id
WHERE c.out_namespace = $namespace AND c.out_name = $name AND c.out_column = $column LIMIT 1
"""
_COLUMNS = """
SELECT DISTINCT out_column AS name FROM columns
WHERE out_namespace = $namespace AND out_name = $name AND out_column IS NOT NULL
UNION
SELECT DISTINCT in_column FROM columns
WHERE in_namespace = $namespace AND in_name = $name AND in_column IS NOT NULL
ORDER BY name
"""


def is_written(
    history: sql.Rows, dataset: DatasetName, column: str, versions: Iterable[tuple[str | None, Any]]
) -> bool:
    """Whether the column lineage of any of these versions gives sources of the column.

    Conditions on all columns do not count: they would be there for any name, also for a wrong one.

    :param history: an opened store of the history
    :param versions: run_id and end of the run of each version
    """
    parameters = {**sql.lists(sql.RUN, versions), **dataset._asdict(), "column": column}
    return bool(history.rows(_IS_COLUMN_WRITTEN, parameters))


def check_column(history: sql.Rows, dataset: DatasetName, column: str) -> None:
    """Refuse a column that no run names; if no column of the dataset is known, accept any.

    A column without sources (a constant) that no run reads is refused too. Only conditions on all
    columns are known about such a column, and these would be the answer for a wrong name as well.

    The check reads the column lineage of all runs: call it only if an answer is empty.

    :param history: an opened store of the history
    :raises UnknownNameError: there is no such column; the error names similar columns
    """
    known = [row["name"] for row in history.rows(_COLUMNS, dataset._asdict())]
    if not known or column in known:
        return
    near = difflib.get_close_matches(column, known, 3) or known[:_LISTED_COLUMNS]
    msg = f"No run names a column {column!r} of {dataset}."
    raise UnknownNameError(msg, f"Known: {len(known):,}, e.g. {', '.join(near)}.")


# A version of another cell, or of more than a cell, has nothing of the asked cell if a later write
# has replaced all that both have in common: of dt=1, dt=1/region=eu was replaced, and region=eu is
# asked for.
_CONTENT = f"""
WITH replaced AS (
    SELECT cell, dims, valid_from, run_id FROM changes
    WHERE namespace = $namespace AND name = $name AND mode IN {sql.REPLACING}
        AND $cell IS NOT NULL AND {sql.meets("cell", "$cell")}
        AND ($as_of IS NULL OR valid_from <= $as_of)
)
SELECT c.run_id, COALESCE(c.cell, $cell) AS cell, c.valid_from,
    c.extent IN ('partition', 'all') AND (c.uncertain_from IS NULL
        OR c.uncertain_from > COALESCE($as_of, TIMESTAMP '9999-12-31')) AS is_certain
FROM changes AS c ANTI JOIN replaced AS r
    ON r.dims IS DISTINCT FROM c.dims
    AND (r.valid_from > c.valid_from OR (r.valid_from = c.valid_from AND r.run_id > c.run_id))
    AND array_length(list_filter(
        string_split(r.cell, '/'),
        lambda part: NOT list_contains(string_split($cell, '/'), part)
            AND NOT list_contains(string_split(COALESCE(c.cell, ''), '/'), part)
    )) = 0
WHERE c.namespace = $namespace AND c.name = $name AND c.mode NOT IN {sql.REMOVING}
    AND ($as_of IS NULL OR c.valid_from <= $as_of)
    AND (c.valid_to IS NULL OR c.valid_to > $as_of)
    AND ($cell IS NULL OR c.cell = $cell
        OR (c.cell IS NOT NULL AND {sql.meets("c.cell", "$cell")})
        OR (c.cell IS NULL AND (c.extent <> 'range' OR {sql.within("$cell", "c")})))
"""


def content(
    history: sql.Rows, dataset: DatasetName, cell: str | None, as_of: datetime | None
) -> list[dict[str, Any]]:
    """Give the versions of a partition, or of all partitions, that exist at a given time.

    :param history: an opened store of the history
    :param cell: canonical text of the partition, ``dt=2024-10-15``; None for all partitions
    :param as_of: the given time; None for now
    :return: rows with run_id, cell (for a version of no known partition the parameter ``cell``),
        valid_from (when the version was written) and is_certain (whether it is certain that the
        version exists at that time, and has data of the partition)
    """
    as_of = of_tables(as_of)
    return history.rows(_CONTENT, {**dataset._asdict(), "cell": cell, "as_of": as_of})


class Folders:
    """The readable form of a dataset's partitions: ``dt=2024-10-15/hour=03`` for ``hour=3``.

    The form of an unknown partition is learned from known ones: the order of the dimensions, the
    leading zeros of a number and the format of a time.

    :param rows: rows with cell (canonical text) and partition (readable text), the latest last
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._known: dict[str, str] = {
            row["cell"]: row["partition"] for row in rows if row["cell"] and row["partition"]
        }
        self._texts: dict[str, dict[str, str]] = defaultdict(dict)
        """For each dimension, the readable text of each canonical value."""
        for cell, partition in self._known.items():
            readable = values_of(partition) or {}
            for label, value in (values_of(cell) or {}).items():
                self._texts[label][value] = readable.get(label, value)
        last = next(reversed(self._known.values()), None)
        self._order = list(values_of(last) or ())
        self._forms = {label: _form(texts) for label, texts in self._texts.items()}

    def of(self, cell: str) -> dict[str, str]:
        """Give the readable values of a partition, known or not, in the order of the folders.

        :param cell: canonical text of the partition; it may lack dimensions of the dataset
        """
        if cell in self._known:
            return values_of(self._known[cell]) or {}
        values = values_of(cell) or {}
        ordered = [label for label in self._order if label in values]
        return {
            label: self._text(label, values[label]) for label in dict.fromkeys((*ordered, *values))
        }

    def _text(self, label: str, value: str) -> str:
        known = self._texts[label].get(value) if label in self._texts else None
        return known or self._forms.get(label, str)(value)


_SAMPLE = 1_000  # known values of a dimension from which its form is learned


def _form(texts: Mapping[str, str]) -> Callable[[str], str]:
    """Find the function that gives the readable texts of most of a dimension's values.

    :param texts: the readable text of each canonical value
    """
    pairs = list(islice(texts.items(), _SAMPLE))
    changed = [pair for pair in pairs if pair[0] != pair[1]]
    width = max((len(text) for value, text in changed if value.isdecimal()), default=0)
    forms: list[Callable[[str], str]] = [str, partial(_padded, width)]
    if changed and not width:
        forms += [partial(_formatted, form) for form in FORMATS]
    return max(forms, key=lambda form: sum(form(value) == text for value, text in pairs))


def _padded(width: int, value: str) -> str:
    return value.zfill(width) if value.isdecimal() else value


def _formatted(form: str, value: str) -> str:
    at = to_datetime(value, "month")
    return written(at, form) if at else value
