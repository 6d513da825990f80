"""The YAML of partitioning rules to plain documents, which remember the lines that they come from.

Nodes are composed, never constructed: no tag of YAML makes an object, and every mistake has its
line. All scalars are texts; what YAML takes for a number or a date has to be quoted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from msgspec import field

from airflow_provider_sparklineage.model.exceptions import RulesError
from airflow_provider_sparklineage.model.files import open_regular
from airflow_provider_sparklineage.model.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

Keys = tuple[str | int, ...]
"""Where a value is: rule, key, and so on, e.g. ``(0, "dimensions", 1, "format")``."""

_HINT = "Quote texts that begin with %, *, { or [, and indent with blanks, not tabs"


class LineNumbers(Frozen, frozen=True):
    """Where the values of rules are, for errors.

    :param name: of the file; empty of inline rules
    :param lines: line by keys; of others that of the value around them
    """

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
        text = f"Partitioning rules, {', '.join(place) or 'as given'}: {problem}."
        return RulesError(text, fix if not fix or fix.endswith("?") else f"{fix}.")


def _dotted(keys: Keys) -> str:
    rule = [f"rule {keys[0] + 1}"] if isinstance(keys[0], int) else []
    rest = "".join(f"[{k + 1}]" if isinstance(k, int) else f".{k}" for k in keys[len(rule) :])
    return ", ".join([*rule, *([f"key {rest.lstrip('.')}"] if rest else [])])


def read(text: str, name: str) -> tuple[object, LineNumbers]:
    """Read the YAML of rules.

    :param name: of the file that they are from; empty of inline rules
    :return: lists, dicts and texts, with their lines; None of empty rules
    :raise RulesError: if it is no YAML
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        lines = LineNumbers(name, {(): mark.line + 1} if mark else {})
        raise lines.error((), f"this is no YAML ({e.problem})", _HINT) from e
    except (yaml.YAMLError, RecursionError) as e:
        raise LineNumbers(name).error((), f"this is no YAML ({e})", _HINT) from e
    if node is None:
        return None, LineNumbers(name)
    plain = _Plain(name)
    document = plain.value(node, ())
    return document, LineNumbers(name, plain.lines)


def content(text_or_path: str | Path) -> tuple[str, str]:
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
            return stream.read().decode(), str(path)
    except (OSError, ValueError, RuntimeError) as e:  # the last, of a home that nobody has
        fix = "Give a readable file in UTF-8, or the rules themselves, as a YAML list"
        raise LineNumbers(str(path)).error((), f"the file cannot be read ({e})", fix) from e


class _Plain:
    """Nodes to plain values, with the line of each."""

    def __init__(self, name: str) -> None:
        self.lines: dict[Keys, int] = {}
        self._name = name
        self._seen: set[int] = set()

    def value(self, node: yaml.Node, keys: Keys) -> object:
        self.lines.setdefault(keys, node.start_mark.line + 1)
        if id(node) in self._seen:
            raise self._error(keys, "anchors (&) and aliases (*) are not read", "Write it out")
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, keys)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*keys, n)) for n, item in enumerate(node.value)]
        kind = node.tag.rpartition(":")[2]
        if kind == "null":
            raise self._error(
                keys, "there is no value", "Give one; a text with braces has to be in quotes"
            )
        if kind != "str":
            raise self._error(keys, f"{node.value} is of YAML's type {kind}", "Put it in quotes")
        return str(node.value)

    def _mapping(self, node: yaml.MappingNode, keys: Keys) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(keys, "a key is no text", "Put layouts in quotes")
            name = str(key.value)
            below = (*keys, name)
            if name in found:
                self.lines[below] = key.start_mark.line + 1
                raise self._error(below, f"the key {name!r} is there twice", "Keep one")
            self.lines[below] = key.start_mark.line + 1
            found[name] = self.value(value, below)
        return found

    def _error(self, keys: Keys, problem: str, fix: str) -> RulesError:
        return LineNumbers(self._name, self.lines).error(keys, problem, fix)
