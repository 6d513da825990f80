"""The datasets of a task that are known before its job runs: their names and expected subsets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from msgspec import field

from airflow_provider_sparklineage.expectations import derivation
from airflow_provider_sparklineage.expectations.derivation import from_partition_key
from airflow_provider_sparklineage.expectations.references import references
from airflow_provider_sparklineage.model.credentials import scrub_name
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import DeclarationError
from airflow_provider_sparklineage.model.terms import Frozen, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_provider_sparklineage.expectations.declarations import DatasetSubset
    from airflow_provider_sparklineage.expectations.statements import Expectation
    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.templates import TracedText


class Declared(Frozen, frozen=True):
    """The datasets and expectations of a task that are known before its job runs.

    :param problems: sentences about invalid declarations
    :param naming: the Spark properties that change how the listener names datasets
    """

    inputs: tuple[DatasetName, ...] = ()
    outputs: tuple[DatasetName, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    problems: tuple[str, ...] = ()
    naming: Mapping[str, str] = field(default_factory=dict)


class TaskFields(Frozen, frozen=True):
    """The rendered fields of a task that name datasets.

    :param texts: the rendered texts, each with its template
    :param inlets: the datasets of the task's ``inlets``; an inlet is always a full dataset
    :param outlets: the datasets of the task's ``outlets``
    :param reads: the value that the author gave: one declaration, or a collection of declarations;
        the same holds for ``writes``
    :param partition_key: the partition key of the run; None if it has none
    """

    texts: Sequence[TracedText] = ()
    inlets: Sequence[DatasetName] = ()
    outlets: Sequence[DatasetName] = ()
    reads: object = None
    writes: object = None
    partition_key: str | None = None
    partition_key_dimensions: str | Sequence[str] | None = None


def declared(
    task: TaskFields, locator: Locator, named: Callable[[object], DatasetName | None]
) -> Declared:
    """Find the datasets that a task names, and the expectations that the task gives.

    :param named: a function that gives the dataset of an object, such as an asset, or None if it is
        not known
    :return: the datasets and expectations, and a problem for each invalid declaration; no error is
        raised for these
    """
    found = _Declarations(task.texts, locator, named)
    inputs = [*task.inlets, *found.add("reads", task.reads, Side.READ)]
    outputs = [*task.outlets, *found.add("writes", task.writes, Side.WRITE)]
    own = [t for t in task.texts if not t.field.startswith(("reads", "writes"))]
    found.expectations += derivation.from_arguments(own, locator)
    found.add_key(task.partition_key, task.partition_key_dimensions)
    return Declared(
        tuple(dict.fromkeys(inputs)),
        tuple(dict.fromkeys(outputs)),
        tuple(found.expectations),
        tuple(found.problems),
    )


class _Declarations:
    """A collector of expectations from declarations, which notes a problem for an invalid one."""

    def __init__(
        self,
        texts: Sequence[TracedText],
        locator: Locator,
        named: Callable[[object], DatasetName | None],
    ) -> None:
        self._texts = texts
        self._locator = locator
        self._named = named
        self.expectations: list[Expectation] = []
        self.problems: list[str] = []
        naming = locator.naming
        if unmirrored := [*naming.unknown_trimmers, *filter(None, [naming.unusable_pattern])]:
            self.problems.append(
                "Datasets cannot be named here as the listener names them, because of "
                f"{', '.join(unmirrored)}; expected partitions may not meet their datasets."
            )

    def add(self, name: str, entries: object, side: Side) -> list[DatasetName]:
        """Add the declarations of ``reads`` or ``writes``, and return the names of their datasets.

        A declared table is not among these names, because its dataset is not known yet.
        """
        if entries is None or (isinstance(entries, (list, tuple)) and not entries):
            return []
        from airflow_provider_sparklineage.expectations.declarations import DatasetSubset, listed

        names = []
        for number, entry in enumerate(listed(entries)):
            subset = entry if isinstance(entry, DatasetSubset) else DatasetSubset(entry)
            if _is_unrendered(subset):
                continue  # the entry's template could not be rendered, so it names no dataset
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
            identity = self._named(subset.dataset)
        elif found := references(subset.dataset, self._locator):
            reference = found[0]
            identity = reference.dataset
        else:
            identity = _table(subset.dataset)
        if identity is None:
            msg = f"No OpenLineage dataset is known for {subset.dataset!r}."
            raise DeclarationError(msg)
        expectation = derivation.from_declaration(
            side, identity, subset, texts, self._locator.rules, reference
        )
        _require_json(expectation)
        self.expectations.append(expectation)
        return identity

    def add_key(self, key: str | None, dimensions: str | Sequence[str] | None) -> None:
        """Add the expectations from the run's partition key, if key and dimensions are given."""
        if not key or not dimensions:
            return
        try:
            self.expectations += from_partition_key(key, dimensions)
        except DeclarationError as error:
            self.problems.append(str(error))


# catalog.namespace.table, with or without backquotes
_TABLE = re.compile(r"(`[^`]+`|[\w-]+)(\.(`[^`]+`|[\w-]+)){0,3}")


def _table(text: str) -> str:
    if scrub_name(text) != text:
        msg = "a URI must not have a user's name and password in it."
        raise DeclarationError(msg)
    if not _TABLE.fullmatch(text.strip()):
        problem = f"{text!r} names no dataset."
        fix = (
            "It must be a URI that Spark reads (s3a://…, file:///…), an absolute path, a table "
            "(schema.table) or an asset."
        )
        raise DeclarationError(problem, fix)
    return text.strip()


def _require_json(expectation: Expectation) -> None:
    """Refuse an expectation that cannot be written to the manifest and the event.

    :raise DeclarationError: if the expectation cannot be encoded as JSON
    """
    try:
        msgspec.json.encode(expectation)
    except (TypeError, ValueError) as error:  # half of a surrogate pair is the latter
        msg = f"it cannot be written as JSON ({error})."
        raise DeclarationError(msg) from error


def _is_unrendered(subset: DatasetSubset) -> bool:
    return subset.template is None and any(begin in repr(subset) for begin in ("{{", "{%"))
