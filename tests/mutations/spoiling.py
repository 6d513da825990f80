"""Spoils bytes, and JSON of any shape; by a seed, so that what was found is found again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random

HOSTILE = (
    *(b"null", b"true", b"0", b"-1", b"1.5", b"-0.0", b"1e999", b"1e-999", b"NaN", b"-Infinity"),
    *(b"9" * 40, b"9" * 5000, b'""', b'"x"', b'" "', b'"' + b"x" * 10_000 + b'"'),
    *(b'"\\ud800"', b'"\\udfff\\ud800"', b'"\\u0000"', b'"\\u001b]0;t\\u0007\\u001b[2J"'),
    *(
        b'"\\u202e\\u2066\\u200f"',
        b'"a\\nb\\r\\u2028c"',
        b'"[/red][bold]"',
        b'"{{ ds }}"',
        b'"\xff"',
    ),
    *(b'"9999-12-31T23:59:59.999999-14:00"', b'"0001-01-01T00:00:00+14:00"', b'"FAIL"', b'"/"'),
    *(b"[]", b"{}", b"[null]", b"[[]]", b"[{}]", b'{"":null}', b'{"a":{"a":[1]}}', b'["a","b"]'),
    *(b"[" * depth + b"]" * depth for depth in (90, 250, 450, 900, 5_000)),
    *(b'{"fields":[{"name":"c","fields":' * d + b"[]" + b"}]}" * d for d in (60, 300)),
    *(b'{"type":"binary","left":' * d + b"{}" + b"}" * d for d in (90, 450)),
    b'{"name":1}',
    b'{"type":"location","locations":[""]}',
    b'{"type":"compare","left":{},"right":[]}',
)
"""What a value is replaced by: of another type, of another size, or what JSON has not."""


def spoiled(text: bytes, chance: random.Random) -> bytes:
    """Spoil a file of JSON, one document or one on each line, or any other bytes."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        spoil = _spoiled_json if chance.random() < 0.65 else _spoiled_bytes
        text = spoil(text, chance)
    return text


# --- bytes ----------------------------------------------------------------------------------------


def _spoiled_bytes(text: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(text) + 1)
    end = min(len(text), at + chance.choice((1, 1, 5, 100, 5000)))
    piece = text[at:end]
    flipped = bytes(b ^ (1 << chance.randrange(8)) for b in piece[:1])
    inserted = chance.choice((b"\xff", b"\0", b"\n", b'"', b"{", b"]", b"\xed\xa0\x80", b"\x1b[2J"))
    other = chance.randrange(len(text) + 1)
    return chance.choice(
        (
            lambda: text[:at] + flipped + text[at + 1 :],
            lambda: text[:at],
            lambda: text[at:],
            lambda: text[:at] + piece + text[at:],
            lambda: text[:at] + text[end:],
            lambda: text[:at] + inserted + text[at:],
            lambda: text[:other] + piece + text[other:],
            lambda: text.replace(b"\n", b"\r\n"),
            lambda: b"\xef\xbb\xbf" + text,
            lambda: text + b"\xff",
            lambda: text.decode(errors="replace").encode("utf-16") if at % 9 == 0 else text[:at],
        )
    )()


# --- JSON -----------------------------------------------------------------------------------------


def _spoiled_json(text: bytes, chance: random.Random) -> bytes:
    lines = text.splitlines(keepends=True)
    at = chance.randrange(len(lines)) if len(lines) > 1 else 0
    for start, end in ((at, at + 1), (0, len(lines))):
        try:
            document = json.loads(b"".join(lines[start:end]))
        except (ValueError, RecursionError):  # it is spoiled already, or is no JSON
            continue
        changed = _spoiled_document(document, chance)
        return b"".join([*lines[:start], changed + b"\n", *lines[end:]])
    return _spoiled_bytes(text, chance)


_MARK = "<what is put here>"


def _spoiled_document(document: Any, chance: random.Random) -> bytes:
    places = _places(document)
    if not places:
        return chance.choice(HOSTILE)
    holder, key = chance.choice(places)
    value = holder[key]
    other_holder, other_key = chance.choice(places)
    kind = chance.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(key, value)
    elif kind == 2:
        copy = json.loads(json.dumps(other_holder[other_key]))
        holder[key], other_holder[other_key] = copy, value
    elif kind == 3 and isinstance(holder, dict):
        holder[chance.choice((key.upper(), f"{key}s", "", other_key))] = holder.pop(key)
    elif kind == 4:
        holder[key] = [value]
    else:
        holder[key] = _MARK
    try:
        changed = json.dumps(document, separators=(",", ":")).encode()
    except (ValueError, RecursionError, TypeError):  # a value was put into itself
        return chance.choice(HOSTILE)
    return changed.replace(f'"{_MARK}"'.encode(), chance.choice(HOSTILE))


def _places(document: Any) -> list[tuple[Any, Any]]:
    """List what is in a document, as containers with their keys."""
    places = []
    ahead = [document]
    while ahead:
        value = ahead.pop()
        if not isinstance(value, (dict, list)):
            continue
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            places.append((value, key))
            ahead.append(inner)
    return places
