"""Texts and numbers in facets of any shape: JSON's objects and lists, and OpenLineage's classes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping


class Cleaning:
    """Changes texts, numbers and keys of a value; what holds nothing to change is given back."""

    def text(self, text: str, key: str, /) -> str:
        """Change a text.

        :param key: what it stands under; ``""`` in a list that stands under nothing, and for what
            stands under a name of the user's
        """
        raise NotImplementedError

    def number(self, number: float) -> float | None:
        """Change a number that is no integer."""
        return number

    def key(self, key: str) -> str:
        """Change a key."""
        return key

    def value(self, value: Any, key: str = "") -> Any:
        """Change a value and all that it holds."""
        if value is None:
            return None
        if isinstance(value, str):
            text = self.text(value, key)
            return value if text == value else text  # a cache may give an equal one of another
        if isinstance(value, float):
            return self.number(value)
        if isinstance(value, dict):
            return self._entries(value, key)
        if isinstance(value, list):
            items = [self.value(item, key) for item in value]
            return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
        fields = _fields(value.__class__)
        return self._object(value, fields) if fields else value

    def _entries(self, value: dict[Any, Any], key: str) -> dict[Any, Any]:
        # The keys of dimensions are columns, whatever they are called.
        theirs = key == "dimensions"
        entries = {
            self.key(k) if isinstance(k, str) else k: self.value(v, "" if theirs else k)
            for k, v in value.items()
        }
        return value if same(entries, value) else entries

    def _object(self, value: Any, fields: tuple[tuple[str, str], ...]) -> Any:
        changed = {}
        for name, parameter in fields:
            before = getattr(value, name)
            after = self.value(before, name)
            if after is not before:
                changed[parameter] = after
        return attrs.evolve(value, **changed) if changed else value


def same(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether two have the same keys, and the very same values."""
    return len(first) == len(second) and all(
        key in second and second[key] is value for key, value in first.items()
    )


@cache
def _fields(of: type) -> tuple[tuple[str, str], ...]:
    """Give the fields of an attrs class, and how its constructor calls them; none of others."""
    return tuple((a.name, a.alias or a.name) for a in attrs.fields(of)) if attrs.has(of) else ()
