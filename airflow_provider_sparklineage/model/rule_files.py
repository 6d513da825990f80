"""Rules that people write in YAML: how they are read, and how a mistake is explained.

Each kind of rules has a :class:`RuleFile`, which has the keys of one rule, as a msgspec struct, and
the words for errors.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec
import yaml
from msgspec import field

from airflow_provider_sparklineage.model.exceptions import RulesError
from airflow_provider_sparklineage.model.files import open_regular
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


# The documents are made of the parser's events. So no tag of YAML makes an object, every mistake
# has its line, and libyaml can be used, which most builds of PyYAML have and which is ten times as
# fast. All scalars remain the texts that were written: 1.10 is not 1.1, and 2024-05-06 is not a
# date.


Keys = tuple[str | int, ...]
"""The place of a value: its rule, key and so on, e.g. ``(0, "dimensions", 1, "format")``."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_MAX_BYTES = 1024 * 1024
"""The most bytes of a file of rules. The parsing of DAG files waits for the file, and a larger one
most likely has no rules."""
EMPTY = ("it must be a text that is not empty", "Put it in quotes")
_HINT = "Quote texts that begin with %, *, { or [, and indent with blanks, not tabs"


class LineNumbers(Frozen, frozen=True):
    """The lines of the values of rules, for errors.

    :param title: the title of these rules, with which an error begins
    :param name: the name of the file; empty for inline rules
    :param lines: the line of each value, by the value's place (:data:`Keys`); for a value whose
        place is missing, the line of the value around it is used
    """

    title: str
    name: str = ""
    lines: Mapping[Keys, int] = field(default_factory=dict)

    def error(self, keys: Keys, problem: str, fix: str = "") -> RulesError:
        """Make the error about an invalid value; ``problem`` and ``fix`` have no full stops.

        :param keys: the place of the value; empty for the rules as a whole
        """
        place = [self.name] if self.name else []
        outer = next((keys[:n] for n in range(len(keys), -1, -1) if keys[:n] in self.lines), None)
        if outer is not None:
            place.append(f"line {self.lines[outer]}")
        if keys:
            place.append(_dotted(keys))
        text = f"{self.title}, {', '.join(place) or 'as given'}: {problem}."
        return RulesError(text, fix if not fix or fix.endswith("?") else f"{fix}.")

    def line(self, n: int) -> int:
        """Give the line on which a rule begins, by the rule's number; 0 if it is not known."""
        return self.lines.get((n,), 0)


def _dotted(keys: Keys) -> str:
    rule = [f"rule {keys[0] + 1}"] if isinstance(keys[0], int) else []
    rest = "".join(f"[{k + 1}]" if isinstance(k, int) else f".{k}" for k in keys[len(rule) :])
    return ", ".join([*rule, *([f"key {rest.lstrip('.')}"] if rest else [])])


class _Reader:
    """Makes plain values of a YAML parser's events, and notes the line of each value."""

    def __init__(self, text: str, title: str, name: str) -> None:
        self._events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        self._lines: dict[Keys, int] = {}
        self.lines = LineNumbers(title, name, self._lines)

    def document(self) -> object:
        """Read the only document of the text; None if the text has only comments.

        :raise RulesError: if the text has a second document, an anchor, an alias or a tag
        """
        next(self._events)  # the stream begins
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        document = self._value(next(self._events), ())
        next(self._events)  # the document ends
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            self._lines[()] = _line(after)
            raise self.lines.error((), "a second document begins (---)", "Keep one")
        return document

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
        values: list[object] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            values.append(self._value(event, (*keys, len(values))))
        return values

    def _mapping(self, keys: Keys) -> dict[str, object]:
        values: dict[str, object] = {}
        while not isinstance(key := next(self._events), yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent):
                fix = "Put texts with braces in quotes"
                raise self.lines.error(keys, "a key is no text", fix)
            below = (*keys, key.value)
            self._lines[below] = _line(key)
            if key.value in values:
                raise self.lines.error(below, f"the key {key.value!r} is there twice", "Keep one")
            values[key.value] = self._value(next(self._events), below)
        return values


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


# No pattern forbids blank texts, because a pattern in a union makes msgspec 0.22 crash when Python
# ends.
Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
Texts: TypeAlias = Text | Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]


def listed(texts: Texts) -> tuple[str, ...]:
    """Give one text or several as a tuple; whitespace around each text is removed."""
    return tuple(text.strip() for text in ([texts] if isinstance(texts, str) else texts))


_NOTHING = ("there is no value", "Give one; a text with braces has to be in quotes")

_UNKNOWN = re.compile("Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile("Object missing required field `(.*)`")

RuleT = TypeVar("RuleT", bound=msgspec.Struct)


class RuleFile(Frozen, Generic[RuleT], frozen=True):
    """A kind of rules that people write in YAML, with the words for its errors.

    :param title: the title of the rules, with which an error begins
    :param rule: the struct of one rule, whose fields are its keys
    :param begin: the text with which a rule begins, for an error
    :param nested: the structs of the mappings that are values of a rule's keys, by key
    :param must_be: the ends of errors about a key's value ("it must be …"), by key
    """

    title: str
    rule: type[RuleT]
    begin: str
    nested: Mapping[str, type[msgspec.Struct]] = field(default_factory=dict)
    must_be: Mapping[str, str] = field(default_factory=dict)

    def content(self, text_or_path: str | Path) -> tuple[str, str]:
        """Give the YAML of rules, and the name of its file; the name is empty for inline rules.

        :param text_or_path: inline YAML if it has more than one line or begins as YAML lists do;
            otherwise the path of a file
        :raise RulesError: if the file cannot be read, or has more than :data:`_MAX_BYTES`
        """
        text = str(text_or_path).strip()
        inline = "\n" in text or text.startswith(("-", "[", "{", "#"))
        if isinstance(text_or_path, str) and (inline or not text):
            return text_or_path, ""
        path = Path(text)
        try:
            path = path.expanduser()
            with open_regular(path) as stream:
                content, more = stream.read(_MAX_BYTES), stream.read(1)
            rules = "" if more else content.decode()
        except (OSError, ValueError, RuntimeError) as e:  # RuntimeError: ~name, without such a user
            problem = f"the file cannot be read ({e})"
            fix = "Give a readable file in UTF-8, or the rules themselves, as a YAML list"
            raise LineNumbers(self.title, str(path)).error((), problem, fix) from e
        if more:
            problem = f"the file has more than {_MAX_BYTES} bytes"
            fix = "Write fewer rules, with globs"
            raise LineNumbers(self.title, str(path)).error((), problem, fix)
        return rules, str(path)

    def read(self, text: str, name: str) -> tuple[object, LineNumbers]:
        """Read the YAML of rules.

        :param name: the name of the file that the text is from; empty for inline rules
        :return: the document, made of lists, dicts, texts and None, and its lines; the document is
            [] if the text has no rules
        :raise RulesError: if the text is not YAML, or has anchors, aliases or tags
        """
        reader = _Reader(text, self.title, name)
        try:
            document = reader.document()
        except yaml.MarkedYAMLError as e:
            mark = e.problem_mark or e.context_mark
            lines = LineNumbers(self.title, name, {(): mark.line + 1} if mark else {})
            raise lines.error((), f"this is no YAML ({e.problem})", _HINT) from e
        except (yaml.YAMLError, RecursionError, UnicodeError) as e:
            raise LineNumbers(self.title, name).error((), f"this is no YAML ({e})", _HINT) from e
        return [] if document is None else document, reader.lines

    def converted(self, documents: object, lines: LineNumbers) -> tuple[RuleT, ...]:
        """Convert plain documents to structs of rules.

        :param lines: the documents' places in their file, for errors
        :raise RulesError: if a document is invalid; the error names its place, its key and the fix
        """
        # All scalars are texts here, so strict=False reads numbers and booleans from texts.
        of_all: Any = tuple[self.rule, ...]  # type: ignore[name-defined]
        try:
            return tuple(msgspec.convert(documents, of_all, strict=False))
        except msgspec.ValidationError as e:
            raise lines.error(*self._explained(str(e))) from e
        except UnicodeEncodeError as e:
            problem = "a text has half of a surrogate pair, which is no character"
            raise lines.error((), problem, "Write the character itself") from e

    def _explained(self, error: str) -> tuple[Keys, str, str]:
        """Turn an error of msgspec into the place of the invalid value, the problem and the fix.

        An error of msgspec has only a text, such as "Object contains unknown field `layuot` - at
        `$[0]`" or "Expected `array`, got `str` - at `$[0].dimensions`".
        """
        problem, _, path = error.rpartition(" - at ") if " - at " in error else (error, "", "")
        path = path.partition("[...]")[0]  # msgspec does not name a key that may have any name
        steps = re.findall(r"\[(\d+)\]|\.(\w+)", path)
        keys: Keys = tuple(int(number) if number else name for number, name in steps)
        structs: list[type[msgspec.Struct]] = [self.rule]
        structs += [self.nested[k] for k in map(str, keys) if k in self.nested]
        fields = structs[-1].__struct_fields__
        if unknown := _UNKNOWN.fullmatch(problem):
            near = get_close_matches(unknown[1], fields, 1)
            fix = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(fields)}"
            return (*keys, unknown[1]), f"the key {unknown[1]!r} is not known", fix
        if missing := _MISSING.fullmatch(problem):
            return keys, f"the key {missing[1]!r} is missing", "Add it"
        if not keys:
            return keys, "the rules are no list", f'Begin each of them with "{self.begin}"'
        if problem.endswith("got `null`"):
            return keys, *_NOTHING
        if problem.startswith("Expected `str`"):
            return keys, *EMPTY
        mapping = f"a mapping with the keys {', '.join(fields)}"
        if problem.startswith("Expected `object`,"):
            return keys, f"it must be {mapping}", ""
        if problem.startswith("Expected `str | object`"):
            return keys, f"it must be a text, or {mapping}", ""
        words = self.must_be.get(str(keys[-1]), "a text, or a list of one or more")
        return keys, f"it must be {words}", ""
