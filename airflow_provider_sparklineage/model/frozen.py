"""The base of immutable values that are only in memory."""

from __future__ import annotations

from msgspec import Struct


class Frozen(Struct, frozen=True):
    """A value that has its fields, is compared and hashed by them, and is never changed.

    A frozen dataclass is the same to those who use it, but Python compiles six methods for each:
    half a millisecond of a process that imports it, and every task is one. These are msgspec's in
    C. Unlike a ``Struct`` that is read or written, it may name types that are only imported for
    type checking.
    """
