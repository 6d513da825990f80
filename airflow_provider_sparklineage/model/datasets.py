"""What the Spark listener calls datasets: namespaces of URIs, and how names are trimmed.

Which dataset and partition a path is in, :mod:`.locations` answers. What Airflow knows and what
Spark reports meet only if both name a dataset alike, so these are the listener's rules, not ours:
``io.openlineage.client.utils.filesystem`` for namespaces, ``io.openlineage.client.dataset`` for
trimming (partition directories go off the end of a name until nothing changes any more) and
``RemovePathPatternUtils`` for what a user has removed after it.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


_CONF = "spark.openlineage.dataset"


class DatasetName(NamedTuple):
    """Identity of a dataset: OpenLineage namespace and name, after trimming."""

    namespace: str
    name: str

    def __str__(self) -> str:
        if self.namespace == "file":
            return self.name
        return f"{self.namespace}{'' if self.name.startswith('/') else '/'}{self.name}"


class Naming(Frozen, frozen=True):
    """The user's own configuration of the listener's names; as it comes, the listener's defaults.

    :param disabled_trimmers: class names of trimmers that are off
    :param extra_trimmers: class names of trimmers that are on, next to the default ones
    :param remove_path: Java regex; what its group ``remove`` matches goes out of trimmed names
    """

    disabled_trimmers: str = ""
    extra_trimmers: tuple[str, ...] = ()
    remove_path: str = ""

    @classmethod
    def of(cls, conf: Mapping[str, str]) -> Naming:
        """Read the configuration from a job's Spark properties."""
        extra = (name.strip() for name in conf.get(f"{_CONF}.extraTrimmers", "").split(";"))
        return cls(
            conf.get(f"{_CONF}.disabledTrimmers", ""),
            tuple(name for name in extra if name),
            conf.get(f"{_CONF}.removePath.pattern", ""),
        )

    @property
    def unknown_trimmers(self) -> tuple[str, ...]:
        """Classes that only the listener can run: where one trims, our names differ."""
        return tuple(
            name
            for name in self.extra_trimmers
            if name not in _TRIMMERS and name not in self.disabled_trimmers
        )

    @property
    def unusable_pattern(self) -> str:
        """The pattern if Python cannot match as Java does: nothing is removed; else empty."""
        return self.remove_path if self.remove_path and _python(self.remove_path) is None else ""

    def trim(self, name: str) -> str:
        """Trim partition directories off the end of a dataset name, to the listener's fixpoint.

        ``k=v`` segments, date directories (``2024-05-06``, ``20240506``, ``06.05.2024``, with a
        time or not), year-month directories and ``yyyy/MM[/dd]`` families go, as far as their
        trimmers are not disabled; at least one segment stays.
        """
        trimmers = _trimmers(self.disabled_trimmers)
        segments = name.split("/")
        while True:
            last = [segment for segment in segments[-4:] if segment]
            count = max([trimmed(last) for trimmed in trimmers], default=0)
            if not count:
                return "/".join(segments)
            del segments[-count:]

    def without_removed(self, name: str) -> str:
        """Take out of a trimmed name what the group ``remove`` of the user's pattern matches."""
        pattern = _python(self.remove_path) if self.remove_path else None
        if pattern is None or "remove" not in pattern.groupindex:
            return name
        found = pattern.search(name)
        if found is None or not found["remove"]:
            return name
        return name[: found.start("remove")] + name[found.end("remove") :]


DEFAULT_NAMING = Naming()

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


def untrimmed(uri: str) -> DatasetName | None:
    """Name the very place of a URI or absolute path, with its partition directories.

    Nothing is unescaped: Hadoop takes a path's ``%`` for what it is.

    :return: None for text that is no URI with a path and no absolute path
    """
    text = uri.strip()
    if text.startswith("/"):
        return DatasetName("file", _tidy(text))
    if not _has_scheme(text):
        return None
    scheme, _, rest = text.partition(":")
    # '?' and '#' are ordinary in Hadoop paths (globs, odd names): only the scheme is special.
    authority, path = "", rest
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        path = slash + path
    path = _tidy(path or "/")
    scheme = scheme.lower()
    if scheme == "file":
        return DatasetName("file", path)
    if scheme in _OBJECT_STORES and authority:
        return DatasetName(f"{_OBJECT_STORES[scheme]}://{authority}", path.lstrip("/") or "/")
    return DatasetName(f"{scheme}://{authority}", path)


def _has_scheme(uri: str) -> bool:
    text = uri.strip()
    try:
        scheme = urlsplit(text).scheme
    except ValueError:  # "http://[::1/x": a bracket that is not closed
        return False
    return bool(scheme) and text[len(scheme) :].startswith(":/")


def _tidy(path: str) -> str:
    return re.sub(r"/{2,}", "/", path).rstrip("/") or "/"


_DATE_FORMS = (
    re.compile(r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"),
    re.compile(r"(?P<day>[0-9]{2})\.(?P<month>[0-9]{2})\.(?P<year>[0-9]{4})"),
    re.compile(r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})"),
)
_DATE_NEIGHBOURS = re.compile(r"[0-9TZ:.\-\s]*")
_YEAR_MONTH = re.compile(r"(?!0000)[0-9]{4}-?(0[1-9]|1[0-2])")
_YEAR = re.compile(r"(?!0000)[0-9]{4}")
_MONTH = re.compile(r"0[1-9]|1[0-2]")
_DAY = re.compile(r"0[1-9]|[12][0-9]|3[01]")


# A trimmer takes the last segments, with one more than it may trim if there is one, and returns how
# many of them go.
def _key_value(last: list[str]) -> int:
    return int(len(last) > 1 and last[-1].count("=") == 1)


def _date(last: list[str]) -> int:
    return int(len(last) > 1 and _is_date(last[-1]))


def _year_month(last: list[str]) -> int:
    return int(len(last) > 1 and _YEAR_MONTH.fullmatch(last[-1]) is not None)


def _date_family(last: list[str]) -> int:
    for count in (3, 2):
        if len(last) > count and _is_family(last[-count:]):
            return count
    return 0


_PACKAGE = "io.openlineage.client.dataset.partition.trimmer"
_TRIMMERS: dict[str, Callable[[list[str]], int]] = {
    f"{_PACKAGE}.DateTrimmer": _date,
    f"{_PACKAGE}.KeyValueTrimmer": _key_value,
    f"{_PACKAGE}.MultiDirDateTrimmer": _date_family,
    f"{_PACKAGE}.YearMonthTrimmer": _year_month,
}


@lru_cache(maxsize=64)  # a task disables the same ones for each name
def _trimmers(disabled: str) -> tuple[Callable[[list[str]], int], ...]:
    # The listener asks whether its list, as one text, contains a class's name.
    return tuple(trimmer for cls, trimmer in _TRIMMERS.items() if cls not in disabled)


def _is_family(segments: list[str]) -> bool:
    patterns = (_YEAR, _MONTH, _DAY)
    return all(p.fullmatch(s) for p, s in zip(patterns, segments, strict=False))


def _is_date(segment: str) -> bool:
    if not _DATE_NEIGHBOURS.fullmatch(segment):
        return False
    # Java's lenient resolver takes the 31st of any month for that month's last day.
    return any(
        _YEAR.fullmatch(found["year"])
        and _MONTH.fullmatch(found["month"])
        and _DAY.fullmatch(found["day"])
        for form in _DATE_FORMS
        for found in form.finditer(segment)
    )


_REGEX_PARTS = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<group>\(\?<(?=[A-Za-z]))", re.DOTALL
)


_SET_OPERATION = re.compile(r"\[|&&|--|\|\||~~")  # Java's, or such as Python may have one day


@lru_cache(maxsize=64)  # a task has one pattern, and asks for it for each name
def _python(pattern: str) -> re.Pattern[str] | None:
    """Translate a Java regex; None if it is wrong, or has what Python's have not."""

    def translated(part: re.Match[str]) -> str:
        return "(?P<" if part["group"] else part[0]

    sets = (part["set"] or "" for part in _REGEX_PARTS.finditer(pattern))
    if any(_SET_OPERATION.search(found, 1) for found in sets):
        return None
    try:
        return re.compile(_REGEX_PARTS.sub(translated, pattern), re.ASCII)  # as Java's classes are
    except (re.error, OverflowError, RecursionError):
        return None


_FILE_SYSTEMS = frozenset({"hdfs", "s3", "gs", "abfss", "wasbs"})
# What the listener makes of JDBC URLs: their scheme first, or their text where it knows no better.
_DATABASES = frozenset({"clickhouse", "db2", "derby", "file", "h2", "hsqldb", "mariadb", "mysql"})
_DATABASES |= {"oracle", "postgres", "postgresql", "redshift", "snowflake", "sqlite", "sqlserver"}
_DATABASES |= {"teradata", "trino", "vertica"}


def is_files(name: DatasetName) -> bool:
    """Whether a dataset is files of a file system, and so may have partitions that Spark knows."""
    return name.namespace == "file" or name.namespace.partition(":")[0] in _FILE_SYSTEMS


_FILE = re.compile(r"part-[^/]*|[^/]*\.[A-Za-z][A-Za-z0-9]{0,9}")


def looks_like_file(path: str) -> bool:
    """Whether the last part of a path is more likely a file than a folder: Spark's datasets."""
    return _FILE.fullmatch(path.rpartition("/")[2]) is not None


def is_database(name: DatasetName) -> bool:
    """Whether a dataset is a table behind JDBC; Derby's namespace is ``file:<path>``."""
    return name.namespace.partition(":")[0] in _DATABASES and not is_files(name)


_SETTINGS = re.compile(r"[;?].*", re.DOTALL)
_EMBEDDED = re.compile(r"(h2|hsqldb|sqlite):file:")


def canonical(name: DatasetName) -> DatasetName:
    """Give a table behind JDBC one name for all spellings of its URL.

    Of databases that the listener does not know it takes the URL for the namespace, with all
    settings but credentials.
    """
    if not is_database(name):
        return name
    return DatasetName(_EMBEDDED.sub(r"\1:", _SETTINGS.sub("", name.namespace)), name.name)


def short_names(names: Iterable[DatasetName]) -> dict[DatasetName, str]:
    """Find the shortest end of each dataset's name that no other dataset shares."""
    segments = {name: [s for s in str(name).split("/") if s] for name in sorted(set(names))}
    ends = Counter(
        tuple(parts[-n:]) for parts in segments.values() for n in range(1, len(parts) + 1)
    )
    found = {}
    for name, parts in segments.items():
        own = (parts[-n:] for n in range(1, len(parts) + 1))
        end = next((e for e in own if ends[tuple(e)] == 1), parts)
        found[name] = "/".join(end) or str(name)
    return found
