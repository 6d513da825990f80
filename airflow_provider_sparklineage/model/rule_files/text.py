"""The YAML of rules to plain documents, which remember the lines that they come from.

Nodes are composed, never constructed: no tag of YAML makes an object, and every mistake has its
line. All scalars are texts, as they are written: 1.10 stays that, and 2024-05-06 is no date.
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

_SCALARS = frozenset({"str", "int", "float", "bool", "timestamp", "null"})
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
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        lines = LineNumbers(title, name, {(): mark.line + 1} if mark else {})
        raise lines.error((), f"this is no YAML ({e.problem})", _HINT) from e
    except (yaml.YAMLError, RecursionError) as e:
        raise LineNumbers(title, name).error((), f"this is no YAML ({e})", _HINT) from e
    if node is None:
        return None, LineNumbers(title, name)
    plain = _Plain(title, name)
    document = plain.value(node, ())
    return document, plain.known


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
            return stream.read().decode(), str(path)
    except (OSError, ValueError, RuntimeError) as e:  # the last, of a home that nobody has
        fix = "Give a readable file in UTF-8, or the rules themselves, as a YAML list"
        raise LineNumbers(title, str(path)).error((), f"the file cannot be read ({e})", fix) from e


class _Plain:
    """Nodes to plain values, with the line of each."""

    def __init__(self, title: str, name: str) -> None:
        self._lines: dict[Keys, int] = {}
        self.known = LineNumbers(title, name, self._lines)
        self._seen: set[int] = set()

    def value(self, node: yaml.Node, keys: Keys) -> object:
        self._lines.setdefault(keys, node.start_mark.line + 1)
        if id(node) in self._seen:
            problem = "anchors (&) and aliases (*) are not read"
            raise self.known.error(keys, problem, "Write it out")
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, keys)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*keys, n)) for n, item in enumerate(node.value)]
        kind = node.tag.rpartition(":")[2]
        if kind not in _SCALARS:
            problem = f"{node.value} is of YAML's type {kind}"
            raise self.known.error(keys, problem, "Put it in quotes")
        return None if kind == "null" else str(node.value)

    def _mapping(self, node: yaml.MappingNode, keys: Keys) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                fix = "Put texts with braces in quotes"
                raise self.known.error(keys, "a key is no text", fix)
            name = str(key.value)
            below = (*keys, name)
            self._lines[below] = key.start_mark.line + 1
            if name in found:
                raise self.known.error(below, f"the key {name!r} is there twice", "Keep one")
            found[name] = self.value(value, below)
        return found
