"""Whether datasets that an application wrote only to read them back are outputs of its task."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model import globs
from airflow_provider_sparklineage.model.frozen import Frozen

if TYPE_CHECKING:
    from airflow_provider_sparklineage.model.datasets import DatasetName


class Intermediates(Frozen, frozen=True):
    """Which intermediate datasets are left out of the outputs.

    :param dropped: globs of names as datasets print, ``<namespace>/<name>`` or the path of a local
        one; ``*`` crosses folders
    """

    dropped: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Intermediates:
        """Read ``keep``, ``drop``, or ``drop: s3://lake/tmp/*, /staging/*``.

        :raise ValueError: if it is none of those
        """
        word, colon, rest = text.strip().partition(":")
        named = tuple(glob.strip() for glob in rest.split(",") if glob.strip())
        kind = word.strip().lower()
        if kind == "keep" and not colon:
            return cls()
        if kind == "drop" and not colon:
            return cls(("*",))
        if kind == "drop" and named:
            return cls(tuple(re.sub("^s3[an]://", "s3://", glob) for glob in named))
        msg = f"{text!r} says neither keep nor drop"
        raise ValueError(msg)

    def __str__(self) -> str:
        if not self.dropped:
            return "keep"
        return "drop" if self.dropped == ("*",) else f"drop: {', '.join(self.dropped)}"

    def drop(self, dataset: DatasetName) -> bool:
        """Whether an intermediate dataset is to be left out."""
        return any(globs.compiled(glob).fullmatch(str(dataset)) for glob in self.dropped)


KEEP = Intermediates()
