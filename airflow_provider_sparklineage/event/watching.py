"""Which of several places did not take an event: a composite transport only logs that.

It raises if none took it. To whoever sends by it a child that failed is as good as sent; but what
is kept to be sent again has to know. Where one place is enough (``continue_on_success: false``),
one that failed before it is no loss.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator


class Failure(NamedTuple):
    """What a child of a composite transport raised."""

    child: Any
    error: Exception

    def repeat(self) -> None:
        """Let the child raise it for each event to come, which the others need not wait for."""

        def failing(_: Any) -> NoReturn:
            raise self.error

        vars(self.child)["emit"] = failing


@contextmanager
def failures(transport: Any) -> Iterator[list[Failure]]:
    """Give what the children of a transport raise meanwhile, and it does not.

    :param transport: of OpenLineage's client; nothing is raised below one that is not composite
    """
    found: list[Failure] = []
    with ExitStack() as noted:
        for child in _children(transport):
            noted.enter_context(_noted(child, found))
        yield found


def _children(transport: Any) -> Iterator[Any]:
    config = getattr(transport, "config", None)
    if getattr(config, "continue_on_success", False):
        for child in transport.transports:
            yield child
            yield from _children(child)


@contextmanager
def _noted(child: Any, found: list[Failure]) -> Iterator[None]:
    before = dict(vars(child))
    emit = child.emit

    def noted(event: Any) -> Any:
        try:
            return emit(event)
        except Exception as error:
            found.append(Failure(child, error))
            raise

    vars(child)["emit"] = noted
    try:
        yield
    finally:
        del vars(child)["emit"]
        if "emit" in before:
            vars(child)["emit"] = before["emit"]
