"""Which runs a user may see by name: those of DAGs whose XComs the user may read, as in the tab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Visibility:
    """What one user may see and clear, for as long as one request.

    :param may_read: whether the user may read the XComs of a DAG; lineage is the content of one
    :param may_clear: whether the user may clear task instances of a DAG
    :param known: ids of all DAGs that Airflow knows
    """

    def __init__(
        self,
        may_read: Callable[[str], bool],
        may_clear: Callable[[str], bool],
        known: Callable[[], frozenset[str]],
    ) -> None:
        self._may_read = _Remembered(may_read)
        self._may_clear = _Remembered(may_clear)
        self._known = known

    def sees(self, run: Mapping[str, Any]) -> bool:
        """Whether a run may be named, by its ``dag_id`` and ``job``.

        A run of another producer has no DAG. But its job may be named after one, as those of
        Spark jobs are that a task starts: then it is as visible as that DAG.
        """
        if dag_id := run.get("dag_id"):
            return self._may_read[str(dag_id)]
        parts = str(run.get("job") or "").split(".")
        names = {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
        return all(self._may_read[dag_id] for dag_id in names & self._known())

    def clears(self, run: Mapping[str, Any]) -> bool:
        """Whether the user may clear the task instance of a run that may be named."""
        dag_id = run.get("dag_id")
        return bool(dag_id) and self._may_clear[str(dag_id)]


class _Remembered(dict[str, bool]):
    """Answers that are asked for once; an auth manager may ask a server for each."""

    def __init__(self, ask: Callable[[str], bool]) -> None:
        super().__init__()
        self._ask = ask

    def __missing__(self, key: str) -> bool:
        answer = self[key] = self._ask(key)
        return answer


class Shown(NamedTuple):
    """What is left of a list for a user.

    :param rows: what the user may see
    :param hidden: how many the user may not
    """

    rows: list[dict[str, Any]]
    hidden: int
