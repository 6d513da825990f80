"""Texts and numbers in JSON of any shape, changed wherever they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.event.document import same

if TYPE_CHECKING:
    from collections.abc import Callable

IDENTITIES = frozenset(
    {
        "_producer",
        "_schemaURL",
        "producer",
        "schemaURL",
        "runId",
        "eventTime",
        "eventType",
        "namespace",
        "name",
        "field",
        "fields",
        "type",
        "subtype",
        "transformationType",
        "comparison",
        "operator",
        "transform",
        "kind",
        "code",
        "column",
    }
)
"""Keys of what is no text for people: names of datasets and columns, words of the specification,
and what else identifies an event."""


class Walk:
    """Changes texts, numbers and keys of a value; what holds nothing to change is given back."""

    def text(self, text: str, key: str, /) -> str:
        """Change a text.

        :param key: what it stands under; ``""`` in a list that stands under nothing, and for what
            stands under a name of the user's
        """
        raise NotImplementedError

    def number(self, number: float) -> float | None:
        """Change a number that is no integer; None leaves it out."""
        return number

    def key(self, key: str) -> str:
        """Change a key."""
        return key

    def value(self, value: Any, key: str = "") -> Any:
        """Change a value and all that it holds; None if nothing is left of it."""
        if isinstance(value, str):
            text = self.text(value, key)
            return value if text == value else text  # a cache may give an equal one of another
        if isinstance(value, float):
            return self.number(value)
        if isinstance(value, dict):
            return self._object(value, key)
        if isinstance(value, list):
            return self._list(value, key)
        return value

    def _object(self, value: dict[str, Any], key: str) -> dict[str, Any]:
        # The keys of dimensions are columns, whatever they are called.
        theirs = key == "dimensions"
        entries = {}
        for k, before in value.items():
            after = self.value(before, "" if theirs else k)
            if after is not None or before is None:
                entries[self.key(k)] = after
        return value if same(entries, value) else entries

    def _list(self, value: list[Any], key: str) -> list[Any]:
        items = []
        is_same = True
        for before in value:
            after = self.value(before, key)
            is_same = is_same and after is before
            if after is before or (after is not None and after != {}):
                items.append(after)
        return value if is_same else items


def without_nulls(value: Any) -> Any:
    """Leave nulls out of a value, and empty objects out of its lists, as OpenLineage's client does.

    It does so when it sends an event, so that what it would leave out is in no other copy either.
    """
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        items = [without_nulls(item) for item in value if item is not None]
        return [item for item in items if item != {}]
    return value


def is_unchanged(value: object, change: Callable[[str], str]) -> bool:
    """Whether no text in a value would be changed; False also where only a walk can find out.

    To change all of its texts at once, each on a line of its own, is far cheaper than to walk,
    which is seldom needed. Most of them come again with each dataset and each edge.
    """
    text = msgspec.json.encode(value)
    if b"\\" in text:
        return False
    texts: dict[bytes, None] = {}
    while text:
        pieces = text.split(b'"', _AT_ONCE)
        text = pieces.pop() if len(pieces) > _AT_ONCE else b""
        texts.update(dict.fromkeys(pieces[1::2]))  # nothing is escaped: every other one is a text
    lines = b"\n".join(texts).decode()
    return change(lines) == lines


_AT_ONCE = 200_000
"""Pieces of a text: each takes more memory than its characters. An even number."""
