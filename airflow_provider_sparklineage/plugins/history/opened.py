"""The history as the page asks it: opened for one request, or why it cannot be.

What the page needs of queries is :class:`Asked`, in JSON's own types, so that what a user may not
see can be left out of any answer in one way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Asked(Protocol):
    """One state of the store; answers are as the commands' ``--json`` has them.

    A dataset is its namespace and name, a partition its text (``dt=2024-10-15/region=eu``), or None
    for all of the dataset.
    """

    @property
    def url(self) -> str:
        """Where the store is."""

    @property
    def generation(self) -> str:
        """What differs between two builds."""

    @property
    def built_at(self) -> str | None:
        """When it was built, ISO."""

    def rows(self, sql: str, parameters: Mapping[str, object] = ...) -> list[dict[str, Any]]:
        """Give rows of the tables."""

    def trace(
        self, dataset: tuple[str, str], partition: str | None, column: str | None, depth: int
    ) -> list[dict[str, Any]]:
        """Give the hops upstream."""

    def downstream(
        self, dataset: tuple[str, str], partition: str | None, column: str | None
    ) -> list[dict[str, Any]]:
        """Give the hops downstream."""

    def plan(
        self, dataset: tuple[str, str], partition: str | None, column: str | None
    ) -> dict[str, Any]:
        """Give the plan for what was made of a partition."""

    def stale(self, dataset: tuple[str, str]) -> list[dict[str, Any]]:
        """Give the partitions of a dataset that are stale, with causes."""

    def refresh(self, dataset: tuple[str, str], partition: str | None) -> dict[str, Any]:
        """Give the plan that makes a stale partition fresh."""

    def gaps(self, dataset: tuple[str, str]) -> list[dict[str, Any]]:
        """Give the partitions that are expected and were never written."""

    def drift(self, task: str) -> list[dict[str, Any]]:
        """Give what a task did otherwise than in the run before, by the name of its job."""

    def close(self) -> None:
        """Let go of its files."""
