"""Texts that tell a time, brought to one spelling so that they can be compared.

``20240506`` in a path, ``2024-05-06`` in a template and the date column of a table are one day. The
spelling is ISO 8601, cut to the precision of the text: ``2024``, ``2024-05``, ``2024-05-06``,
``2024-05-06T03``, ``2024-05-06T03:30`` …; a zone stays as it is written, because what an hour
without one means is for the data to say.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

# Directives of strftime from fine to coarse, with the ISO spelling of a time of that precision.
_PRECISIONS = (
    ("fTXcs", "%Y-%m-%dT%H:%M:%S.%f"),
    ("S", "%Y-%m-%dT%H:%M:%S"),
    ("M", "%Y-%m-%dT%H:%M"),
    ("HI", "%Y-%m-%dT%H"),
    ("djDxUWVGuw", "%Y-%m-%d"),
    ("mbB", "%Y-%m"),
    ("Yy", "%Y"),
)
_DIRECTIVE = re.compile(r"%[-_0^#]?([A-Za-z%])")

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
    for shape in _FORMS:
        if match := shape.fullmatch(text):
            return _joined(match)
    return None


# In the order in which they are tried; each text fits one, but for 202405, which is a month.
_KNOWN_FORMS = (
    "%Y-%m-%d",
    "%Y%m%d",
    "%Y-%m",
    "%Y%m",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S%z",
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
    return next((form for form in _KNOWN_FORMS if all(_fits(t, form) for t in texts)), None)


def _fits(text: str, form: str) -> bool:
    try:
        parsed = datetime.strptime(text, form)  # noqa: DTZ007  (only whether it can be read)
    except (ValueError, TypeError):
        return False
    # strptime takes 2024-5-6 for %Y-%m-%d, and 2024011 for %Y%m%d.
    return form.endswith("%z") or (
        parsed.strftime(form.replace("%Y", f"{parsed.year:04d}")) == text
    )


def precision(form: str) -> str:
    """Give the ISO 8601 spelling, as a strftime format, of the precision that a format has."""
    used = set(_DIRECTIVE.findall(form))
    if not used & set("YyGcx"):  # an hour or a month of no year is no time that could be compared
        return ""
    return next((iso for letters, iso in _PRECISIONS if used & set(letters)), "")


def _parsed(text: str, form: str) -> str | None:
    spelling = precision(form)
    try:
        moment = datetime.strptime(text, form)  # noqa: DTZ007  (only its spelling is of interest)
    except (ValueError, re.error):
        return None
    # strftime leaves the zeros of years before 1000 out.
    return moment.strftime(spelling.replace("%Y", f"{moment.year:04d}")) if spelling else None


def _joined(match: re.Match[str]) -> str | None:
    part = match.groupdict()
    try:
        datetime(int(part["Y"]), int(part["m"]), int(part["d"] or 1))  # noqa: DTZ001  (a check)
    except ValueError:
        return None
    text = f"{part['Y']}-{part['m']}"
    for separator, name in (("-", "d"), ("T", "H"), (":", "M")):
        if part[name]:
            text += separator + part[name]
    seconds = (part["S"] or "").lstrip(":")
    text += f":{seconds}" if seconds else ""
    return text + (part["zone"] or "").replace("Z", "+00:00")
