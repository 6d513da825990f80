"""Texts that tell a time, brought to one spelling so that they can be compared.

``20240506`` in a path, ``2024-05-06`` in a template and the date column of a table are one day. The
spelling is ISO 8601, cut to the precision of the text: ``2024``, ``2024-05``, ``2024-05-06``,
``2024-05-06T03``, ``2024-05-06T03:30`` …; a zone stays as it is written, because what an hour
without one means is for the data to say.
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache

from airflow_provider_sparklineage.model.times import digits_in, directives, iso_pattern, spelling

_YEAR, _MONTH, _DAY = r"(?P<Y>\d{4})", r"(?P<m>0[1-9]|1[0-2])", r"(?P<d>0[1-9]|[12]\d|3[01])"
_HOUR, _MINUTE = r"(?P<H>[01]\d|2[0-3])", r"(?P<M>[0-5]\d)"
_REST = r"(?P<S>:[0-5]\d(\.\d{1,9})?)?(?P<zone>Z|[+-]\d\d:?\d\d)?"
# A year alone is any number; only a format can say that it is a year.
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"{_YEAR}-{_MONTH}(-{_DAY}([T _-]{_HOUR}(:{_MINUTE}{_REST})?)?)?",
        rf"{_YEAR}{_MONTH}{_DAY}(T?{_HOUR}({_MINUTE}(?P<S>[0-5]\d)?)?)?(?P<zone>Z|[+-]\d\d:?\d\d)?",
    )
)
_DAY_ALONE = re.compile(r"\d{4}(-\d\d-\d\d|\d{4})", re.ASCII)


@lru_cache(maxsize=100_000)
def canonical(text: str, form: str = "") -> str | None:
    """Spell a time in ISO 8601, to the precision that the text has.

    >>> canonical("20240506"), canonical("06.05.2024", "%d.%m.%Y"), canonical("PL")
    ('2024-05-06', '2024-05-06', None)

    :param form: how the text spells it, as :meth:`~datetime.datetime.strptime` has it; without one
        only ISO 8601 in its extended and its basic form is taken for a time
    :return: None for what is no time, or does not fit the form
    """
    if form:
        return _parsed(text, form)
    if _DAY_ALONE.fullmatch(text):  # what nearly all are, quickly
        try:
            return date.fromisoformat(text).isoformat()
        except ValueError:
            return None
    for shape in _FORMS:
        if match := shape.fullmatch(text):
            return _joined(match)
    return None


def _parsed(text: str, form: str) -> str | None:
    try:
        digits, wanted = digits_in(form, text), iso_pattern(directives(form))
        return spelling(digits, wanted) if digits and wanted else None
    except (ValueError, KeyError):
        return None


def _joined(match: re.Match[str]) -> str | None:
    part = match.groupdict()
    try:
        date(int(part["Y"]), int(part["m"]), int(part["d"] or 1))
    except ValueError:
        return None
    text = f"{part['Y']}-{part['m']}"
    for separator, name in (("-", "d"), ("T", "H"), (":", "M")):
        if part[name]:
            text += separator + part[name]
    seconds = (part["S"] or "").lstrip(":")
    text += f":{seconds}" if seconds else ""
    return text + (part["zone"] or "").replace("Z", "+00:00")


# In the order in which they are tried.
_KNOWN_FORMS = (
    "%Y-%m-%d",
    "%Y%m%d",
    "%Y-%m",
    "%Y%m",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H",
    "%Y-%m-%d-%H",
    "%Y%m%d%H",
    "%Y",
)


def form_of(*texts: str) -> str | None:
    """Tell how times are spelled, as a strptime format; None if they are not all spelled alike."""
    return next((f for f in _KNOWN_FORMS if all(canonical(text, f) for text in texts)), None)
