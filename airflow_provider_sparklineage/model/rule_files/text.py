"""The YAML of rules to plain documents, which remember the lines that they come from.

They are made of the parser's events: no tag of YAML makes an object, every mistake has its line,
and libyaml, which most builds of PyYAML have, is ten times as fast. All scalars are texts, as they
are written: 1.10 stays that, and 2024-05-06 is no date.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from msgspec import field

from airflow_provider_sparklineage.model.exceptions import RulesError
from airflow_provider_sparklineage.model.files import open_regular
from airflow_provider_sparklineage.model.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Keys = tuple[str | int, ...]
"""Where a value is: rule, key, and so on, e.g. ``(0, "dimensions", 1, "format")``."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_MAX_BYTES = 1024 * 1024
"""Of a file of rules: parsing a DAG file waits for it, and what is larger is another file."""
EMPTY = ("it must be a text that is not empty", "Put it in quotes")
_HINT = "Quote texts that begin with %, *, { or [, and indent with blanks, not tabs"


class LineNumbers(Frozen, frozen=True):
    """Where the values of rules are, for errors.

    :param title: of these rules, which begins an error
    :param name: of the file; empty of inline rules
    :param lines: line by keys; of others that of the value around them
    """

    title: str
    name: str = ""
    lines: Mapping[Keys, int] = field(default_factory=dict)

    def error(self, keys: Keys, problem: str, fix: str = "") -> RulesError:
        """Make the error of a wrong value; problem and fix are sentences without a full stop."""
        place = [self.name] if self.name else []
        known = next((keys[:n] for n in range(len(keys), -1, -1) if keys[:n] in self.lines), None)
        if known is not None:
            place.append(f"line {self.lines[known]}")
        if keys:
            place.append(_dotted(keys))
        text = f"{self.title}, {', '.join(place) or 'as given'}: {problem}."
        return RulesError(text, fix if not fix or fix.endswith("?") else f"{fix}.")


def _dotted(keys: Keys) -> str:
    rule = [f"rule {keys[0] + 1}"] if isinstance(keys[0], int) else []
    rest = "".join(f"[{k + 1}]" if isinstance(k, int) else f".{k}" for k in keys[len(rule) :])
    return ", ".join([*rule, *([f"key {rest.lstrip('.')}"] if rest else [])])


def read(text: str, name: str, title: str) -> tuple[object, LineNumbers]:
    """Read the YAML of rules.

    :param name: of the file that they are from; empty of inline rules
    :return: lists, dicts, texts and None, with their lines; None of empty rules
    :raise RulesError: if it is no YAML
    """
    reader = _Reader(text, title, name)
    try:
        return reader.document(), reader.lines
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        lines = LineNumbers(title, name, {(): mark.line + 1} if mark else {})
        raise lines.error((), f"this is no YAML ({e.problem})", _HINT) from e
    except (yaml.YAMLError, RecursionError, UnicodeError) as e:
        raise LineNumbers(title, name).error((), f"this is no YAML ({e})", _HINT) from e


def content(text_or_path: str | Path, title: str) -> tuple[str, str]:
    """Give the YAML of rules, and the name of the file that it is in; empty if there is none.

    :param text_or_path: inline if it has more than one line or begins as YAML lists do
    :raise RulesError: if there is no such file
    """
    given = str(text_or_path).strip()
    inline = "\n" in given or given.startswith(("-", "[", "{", "#"))
    if isinstance(text_or_path, str) and (inline or not given):
        return text_or_path, ""
    path = Path(given)
    try:
        path = path.expanduser()
        with open_regular(path) as stream:
            found, more = stream.read(_MAX_BYTES), stream.read(1)
        rules = "" if more else found.decode()
    except (OSError, ValueError, RuntimeError) as e:  # the last, of a home that nobody has
        fix = "Give a readable file in UTF-8, or the rules themselves, as a YAML list"
        raise LineNumbers(title, str(path)).error((), f"the file cannot be read ({e})", fix) from e
    if more:
        problem = f"the file has more than {_MAX_BYTES} bytes"
        raise LineNumbers(title, str(path)).error((), problem, "Write fewer rules, with globs")
    return rules, str(path)


class _Reader:
    """The events of a YAML parser to plain values, with the line of each."""

    def __init__(self, text: str, title: str, name: str) -> None:
        self._events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        self._lines: dict[Keys, int] = {}
        self.lines = LineNumbers(title, name, self._lines)

    def document(self) -> object:
        """Read all of it; None if there is nothing but comments."""
        next(self._events)  # the stream begins
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        found = self._value(next(self._events), ())
        next(self._events)  # the document ends
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            self._lines[()] = _line(after)
            raise self.lines.error((), "a second document begins (---)", "Keep one")
        return found

    def _value(self, event: Any, keys: Keys) -> object:
        self._lines.setdefault(keys, _line(event))
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            problem = "anchors (&) and aliases (*) are not read"
            raise self.lines.error(keys, problem, "Write it out")
        if event.tag:
            problem = f"tags ({event.tag}) are not read"
            raise self.lines.error(keys, problem, "Put texts that begin with ! in quotes")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(keys)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(keys)
        is_plain = event.implicit[0]
        if is_plain and event.value in _NULLS:
            return None
        if not event.value.strip():
            raise self.lines.error(keys, *EMPTY)
        return event.value

    def _sequence(self, keys: Keys) -> list[object]:
        found: list[object] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            found.append(self._value(event, (*keys, len(found))))
        return found

    def _mapping(self, keys: Keys) -> dict[str, object]:
        found: dict[str, object] = {}
        while not isinstance(key := next(self._events), yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent):
                fix = "Put texts with braces in quotes"
                raise self.lines.error(keys, "a key is no text", fix)
            below = (*keys, key.value)
            self._lines[below] = _line(key)
            if key.value in found:
                raise self.lines.error(below, f"the key {key.value!r} is there twice", "Keep one")
            found[key.value] = self._value(next(self._events), below)
        return found


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
