"""URI or path to the OpenLineage dataset name that the Spark listener gives it.

Merging what Airflow knows with what Spark reports works only if both name a dataset alike, so these
are the listener's rules, not ours: ``io.openlineage.client.utils.filesystem`` for namespaces and
``io.openlineage.client.dataset`` for trimming (partition directories are cut off the end of a name
until nothing changes any more).
"""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple
from urllib.parse import unquote, urlsplit


class DatasetName(NamedTuple):
    """Identity of a dataset: OpenLineage namespace and name, after trimming."""

    namespace: str
    name: str

    def __str__(self) -> str:
        if self.namespace == "file":
            return self.name
        return f"{self.namespace}{'' if self.name.startswith('/') else '/'}{self.name}"


# Object stores whose Hadoop schemes are one namespace, with the path relative to the bucket.
_OBJECT_STORES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "abfs": "abfss",
    "abfss": "abfss",
    "wasb": "wasbs",
    "wasbs": "wasbs",
}


def from_uri(uri: str) -> DatasetName | None:
    """Name the dataset at a URI or absolute path as the Spark listener would.

    :param uri: ``s3a://bucket/table/dt=2024-05-06``, ``file:///lake/orders``, ``/lake/orders`` …
    :return: the trimmed name, or None for text that is no URI with a path and no absolute path
    """
    text = uri.strip()
    if text.startswith("/"):
        return DatasetName("file", trim(_tidy(text)))
    try:
        parts = urlsplit(text)
    except ValueError:  # "http://[::1/x": a bracket that is not closed
        return None
    if not parts.scheme or not text[len(parts.scheme) :].startswith(":/"):
        return None
    # '?' and '#' are ordinary in Hadoop paths (globs, odd names): only the scheme is special.
    rest = text[len(parts.scheme) + 1 :]
    authority, path = "", rest
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        path = slash + path
    path = _tidy(path or "/")
    if parts.scheme == "file":
        return DatasetName("file", trim(unquote(path)))
    if parts.scheme in _OBJECT_STORES and authority:
        name = path.lstrip("/") or "/"
        return DatasetName(f"{_OBJECT_STORES[parts.scheme]}://{authority}", trim(name))
    return DatasetName(f"{parts.scheme}://{authority}", trim(path))


def _tidy(path: str) -> str:
    return re.sub(r"/{2,}", "/", path).rstrip("/") or "/"


_DATE_FORMS = (
    re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"),
    re.compile(r"(?P<day>\d{2})\.(?P<month>\d{2})\.(?P<year>\d{4})"),
    re.compile(r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})"),
)
_DATE_NEIGHBOURS = re.compile(r"[\dTZ:.\-\s]*")
_YEAR_MONTH = re.compile(r"\d{4}-?(0[1-9]|1[0-2])")
_YEAR = re.compile(r"\d{4}")
_MONTH = re.compile(r"0[1-9]|1[0-2]")
_DAY = re.compile(r"0[1-9]|[12]\d|3[01]")


def trim(name: str) -> str:
    """Cut partition directories off the end of a dataset name, to the listener's fixpoint.

    ``k=v`` segments, date directories (``2024-05-06``, ``20240506``, ``06.05.2024``, with a time or
    not), year-month directories and ``yyyy/MM[/dd]`` families go; at least one segment stays.
    """
    while (shorter := _trim_once(name)) != name:
        name = shorter
    return name


def _trim_once(name: str) -> str:
    segments = name.split("/")
    real = [s for s in segments if s]
    last = real[-1] if real else ""
    if len(real) >= 2 and (last.count("=") == 1 or _is_date(last) or _YEAR_MONTH.fullmatch(last)):
        return "/".join(segments[:-1])
    if len(real) >= 4 and _is_directory_family(real[-3:]):
        return "/".join(segments[:-3])
    if len(real) >= 3 and _is_directory_family(real[-2:]):
        return "/".join(segments[:-2])
    return name


def _is_directory_family(segments: list[str]) -> bool:
    patterns = (_YEAR, _MONTH, _DAY)
    return all(p.fullmatch(s) for p, s in zip(patterns, segments, strict=False))


def _is_date(segment: str) -> bool:
    if not _DATE_NEIGHBOURS.fullmatch(segment):
        return False
    for form in _DATE_FORMS:
        for match in form.finditer(segment):
            try:
                date(int(match["year"]), int(match["month"]), int(match["day"]))
            except ValueError:
                continue
            return True
    return False
