"""Rules that people write in YAML: what they are read by, and how a mistake is explained.

A kind of rules says what one rule may have, as a msgspec struct, and gives the words for errors.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import field

from airflow_provider_sparklineage.model.frozen import Frozen
from airflow_provider_sparklineage.model.rule_files import text
from airflow_provider_sparklineage.model.rule_files.text import EMPTY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from airflow_provider_sparklineage.model.rule_files.text import Keys, LineNumbers

# No pattern for blank texts: in a union it makes msgspec 0.22 crash when Python ends.
Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
Texts: TypeAlias = Text | Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]

_NOTHING = ("there is no value", "Give one; a text with braces has to be in quotes")

_UNKNOWN = re.compile("Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile("Object missing required field `(.*)`")

RuleT = TypeVar("RuleT", bound=msgspec.Struct)


class RuleFile(Frozen, Generic[RuleT], frozen=True):
    """A kind of rules.

    :param title: which begins an error
    :param rule: what one rule may have
    :param begin: how a rule begins
    :param nested: what a mapping below a key may have, by the key
    :param must_be: what ends an error about a key's value, by the key
    """

    title: str
    rule: type[RuleT]
    begin: str
    nested: Mapping[str, type[msgspec.Struct]] = field(default_factory=dict)
    must_be: Mapping[str, str] = field(default_factory=dict)

    def content(self, text_or_path: str | Path) -> tuple[str, str]:
        """Give the YAML of rules, and the name of the file that it is in; empty if there is none.

        :param text_or_path: inline if it has more than one line or begins as YAML lists do
        :raise RulesError: if there is no such file
        """
        return text.content(text_or_path, self.title)

    def read(self, yaml: str, name: str) -> tuple[object, LineNumbers]:
        """Read the YAML of rules to plain documents.

        :param name: of the file that they are from; empty of inline rules
        :raise RulesError: if it is no YAML
        """
        documents, lines = text.read(yaml, name, self.title)
        return [] if documents is None else documents, lines

    def converted(self, documents: object, lines: LineNumbers) -> tuple[RuleT, ...]:
        """Convert plain documents.

        :param lines: where they are from
        :raise RulesError: if one is wrong; names its place and key, and what to do
        """
        # What is written as a text may stand for a number or a truth.
        of_all: Any = tuple[self.rule, ...]  # type: ignore[name-defined]
        try:
            return tuple(msgspec.convert(documents, of_all, strict=False))
        except msgspec.ValidationError as e:
            raise lines.error(*self._explained(str(e))) from e
        except UnicodeEncodeError as e:
            problem = "a text has half of a surrogate pair, which is no character"
            raise lines.error((), problem, "Write the character itself") from e

    def _explained(self, error: str) -> tuple[Keys, str, str]:
        """Turn an error of msgspec into the keys of what is wrong, the problem and the fix.

        Such as "Object contains unknown field `layuot` - at `$[0]`", of which only the text is
        given, or "Expected `array`, got `str` - at `$[0].dimensions`".
        """
        problem, _, path = error.rpartition(" - at ") if " - at " in error else (error, "", "")
        path = path.partition("[...]")[0]  # below a key of any name msgspec gives none
        found = re.findall(r"\[(\d+)\]|\.(\w+)", path)
        keys: Keys = tuple(int(number) if number else name for number, name in found)
        structs: list[type[msgspec.Struct]] = [self.rule]
        structs += [self.nested[k] for k in map(str, keys) if k in self.nested]
        known = structs[-1].__struct_fields__
        if unknown := _UNKNOWN.fullmatch(problem):
            near = get_close_matches(unknown[1], known, 1)
            fix = f"Did you mean {near[0]!r}?" if near else f"Known are {', '.join(known)}"
            return (*keys, unknown[1]), f"the key {unknown[1]!r} is not known", fix
        if missing := _MISSING.fullmatch(problem):
            return keys, f"the key {missing[1]!r} is missing", "Add it"
        if not keys:
            return keys, "the rules are no list", f'Begin each of them with "{self.begin}"'
        if problem.endswith("got `null`"):
            return keys, *_NOTHING
        if problem.startswith("Expected `str`"):
            return keys, *EMPTY
        mapping = f"a mapping with the keys {', '.join(known)}"
        if problem.startswith("Expected `object`,"):
            return keys, f"it must be {mapping}", ""
        if problem.startswith("Expected `str | object`"):
            return keys, f"it must be a text, or {mapping}", ""
        words = self.must_be.get(str(keys[-1]), "a text, or a list of one or more")
        return keys, f"it must be {words}", ""
