"""The names that the Spark listener gives to datasets: their namespaces, and their trimming.

:mod:`airflow_provider_sparklineage.model.locations` finds the dataset and the partition of a path.
Airflow and Spark speak of one dataset only if both give it the same name. So the rules of this
module are the listener's: ``io.openlineage.client.utils.filesystem`` for namespaces,
``io.openlineage.client.dataset`` for trimming (partition directories are cut off the end of a name
until nothing changes any more), and ``RemovePathPatternUtils`` for the pattern by which a user
removes a part of a trimmed name.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


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
    """The user's configuration of the listener's names; the defaults are the listener's own.

    :param disabled_trimmers: class names of the trimmers that are not used, as one text
    :param extra_trimmers: class names of the trimmers that are used with the default ones
    :param remove_path: Java regex; the match of its group ``remove`` is removed from trimmed names
    """

    disabled_trimmers: str = ""
    extra_trimmers: tuple[str, ...] = ()
    remove_path: str = ""

    @classmethod
    def from_properties(cls, conf: Mapping[str, str]) -> Naming:
        """Read the configuration from a job's Spark properties."""
        extra = (name.strip() for name in conf.get(f"{_CONF}.extraTrimmers", "").split(";"))
        return cls(
            conf.get(f"{_CONF}.disabledTrimmers", ""),
            tuple(name for name in extra if name),
            conf.get(f"{_CONF}.removePath.pattern", ""),
        )

    @property
    def unknown_trimmers(self) -> tuple[str, ...]:
        """The configured trimmers that :meth:`trim` ignores, because only the listener has them."""
        return tuple(
            name
            for name in self.extra_trimmers
            if name not in _TRIMMERS and name not in self.disabled_trimmers
        )

    @property
    def unusable_pattern(self) -> str:
        """The ``removePath`` pattern if Python cannot match it as Java does; otherwise empty.

        With such a pattern, :meth:`without_removed` removes nothing.
        """
        return self.remove_path if self.remove_path and _python(self.remove_path) is None else ""

    def trim(self, name: str) -> str:
        """Trim partition directories off the end of a dataset name, until nothing changes.

        ``k=v`` segments, date directories (``2024-05-06``, ``20240506``, ``06.05.2024``, with a
        time or not), year-month directories and ``yyyy/MM[/dd]`` series are cut off, unless their
        trimmers are disabled. The first segment is never cut off.
        """
        trimmers = _trimmers(self.disabled_trimmers)
        segments = name.split("/")
        while True:
            last = [segment for segment in segments[-4:] if segment][1:]
            count = max([trimmed(last) for trimmed in trimmers if last], default=0)
            if not count:
                return "/".join(segments)
            del segments[-count:]

    def without_removed(self, name: str) -> str:
        """Remove the part of a trimmed name that the user's ``removePath`` pattern matches.

        The part is the match of the pattern's group ``remove``. Without a pattern or a match the
        name is returned as it is.
        """
        pattern = _python(self.remove_path) if self.remove_path else None
        if pattern is None or "remove" not in pattern.groupindex:
            return name
        match = pattern.search(name)
        if match is None or not match["remove"]:
            return name
        return name[: match.start("remove")] + name[match.end("remove") :]


DEFAULT_NAMING = Naming()

# The Hadoop schemes of object stores, each with the scheme that the listener writes in namespaces.
# Names in such a namespace are relative to the bucket.
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

# '?' and '#' are ordinary in Hadoop paths (globs, odd names): only the scheme is special.
_URI = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*):(?=/)(?://(?P<authority>[^/]*))?(?P<path>/.*)?",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_IPV6 = re.compile(r"\[[0-9a-f.]*:[0-9a-f:.]*\]", re.IGNORECASE)


def untrimmed(uri: str) -> DatasetName | None:
    """Give the dataset name of a URI or absolute path, with its partition directories.

    Nothing is unescaped: in Hadoop's paths a ``%`` is an ordinary character.

    :return: None if the text is neither a URI with a path nor an absolute path
    """
    text = uri.strip()
    if text.startswith("/"):
        return DatasetName("file", _tidy(text))
    uri_parts = _URI.fullmatch(text)
    if uri_parts is None:
        return None
    scheme, authority = uri_parts["scheme"].lower(), uri_parts["authority"] or ""
    if not {"[", "]"}.isdisjoint(_IPV6.sub("", authority, 1)):  # no host: [s3://lake], http://[::1
        return None
    path = _tidy(uri_parts["path"] or "/")
    if scheme == "file":
        return DatasetName("file", path)
    if scheme in _OBJECT_STORES and authority:
        return DatasetName(f"{_OBJECT_STORES[scheme]}://{authority}", path.lstrip("/") or "/")
    return DatasetName(f"{scheme}://{authority}", path)


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


def _date_family(last: list[str]) -> int:
    for count in (3, 2):
        parts = zip((_YEAR, _MONTH, _DAY), last[-count:], strict=False)
        if len(last) >= count and all(pattern.fullmatch(part) for pattern, part in parts):
            return count
    return 0


_PACKAGE = "io.openlineage.client.dataset.partition.trimmer"
_TRIMMERS: dict[str, Callable[[list[str]], int]] = {
    f"{_PACKAGE}.DateTrimmer": lambda last: _is_date(last[-1]),
    f"{_PACKAGE}.KeyValueTrimmer": lambda last: last[-1].count("=") == 1,
    f"{_PACKAGE}.MultiDirDateTrimmer": _date_family,
    f"{_PACKAGE}.YearMonthTrimmer": lambda last: bool(_YEAR_MONTH.fullmatch(last[-1])),
}
"""Each trimmer gets the last segments of a name, one to three but never its first, and returns how
many of them it cuts off."""


@lru_cache(maxsize=64)  # one task's disabled trimmers are the same for each name
def _trimmers(disabled: str) -> tuple[Callable[[list[str]], int], ...]:
    # As the listener does: a class is disabled if its name is anywhere in the setting's text.
    return tuple(trimmer for cls, trimmer in _TRIMMERS.items() if cls not in disabled)


def _is_date(segment: str) -> bool:
    if not _DATE_NEIGHBOURS.fullmatch(segment):
        return False
    # Java's resolver is lenient: it reads the 31st of any month as that month's last day. So no
    # day is checked against its month here.
    return any(
        _YEAR.fullmatch(date["year"])
        and _MONTH.fullmatch(date["month"])
        and _DAY.fullmatch(date["day"])
        for form in _DATE_FORMS
        for date in form.finditer(segment)
    )


_REGEX_PARTS = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<group>\(\?<(?=[A-Za-z]))", re.DOTALL
)


_SET_OPERATION = re.compile(r"\[|&&|--|\|\||~~")  # Java has some; Python reserves the others


@lru_cache(maxsize=64)  # a task has one pattern, which is needed for each name
def _python(pattern: str) -> re.Pattern[str] | None:
    """Translate a Java regex; None if it is invalid, or Python cannot match it as Java does."""

    def translated(part: re.Match[str]) -> str:
        return "(?P<" if part["group"] else part[0]

    sets = (part["set"] or "" for part in _REGEX_PARTS.finditer(pattern))
    if any(_SET_OPERATION.search(characters, 1) for characters in sets):
        return None
    try:
        return re.compile(_REGEX_PARTS.sub(translated, pattern), re.ASCII)  # as Java's classes are
    except (re.error, OverflowError, RecursionError):
        return None


_FILE_SYSTEMS = frozenset({"hdfs", "s3", "gs", "abfss", "wasbs"})
# Beginnings of the namespaces that the listener makes of JDBC URLs: the URL's scheme, or all of its
# text for databases that the listener does not know.
_DATABASES = frozenset({"clickhouse", "db2", "derby", "file", "h2", "hsqldb", "mariadb", "mysql"})
_DATABASES |= {"oracle", "postgres", "postgresql", "redshift", "snowflake", "sqlite", "sqlserver"}
_DATABASES |= {"teradata", "trino", "vertica"}


def is_files(name: DatasetName) -> bool:
    """Whether a dataset consists of files, so that its folders may be partitions."""
    return name.namespace == "file" or name.namespace.partition(":")[0] in _FILE_SYSTEMS


_FILE = re.compile(r"part-[^/]*|[^/]*\.[A-Za-z][A-Za-z0-9]{0,9}")


def looks_like_file(path: str) -> bool:
    """Whether the last part of a path is more likely a file than a folder.

    Spark writes a dataset as a folder, so a file is a part of a dataset.
    """
    return _FILE.fullmatch(path.rpartition("/")[2]) is not None


def is_database(name: DatasetName) -> bool:
    """Whether a dataset is a table that Spark reads or writes over JDBC.

    A namespace ``file:<path>`` is that of an embedded Derby database; the namespace ``file`` is
    that of local files.
    """
    return name.namespace.partition(":")[0] in _DATABASES and not is_files(name)


_SETTINGS = re.compile(r"[;?].*", re.DOTALL)
_EMBEDDED = re.compile(r"(h2|hsqldb|sqlite):file:")


def canonical(name: DatasetName) -> DatasetName:
    """Give the one name of a table that is used over JDBC; return other names unchanged.

    If the listener does not know the database, the namespace is the table's URL with all settings
    but credentials. This function removes the settings, so that the name does not depend on them.
    """
    if not is_database(name):
        return name
    return DatasetName(_EMBEDDED.sub(r"\1:", _SETTINGS.sub("", name.namespace)), name.name)


PARTS = re.compile("[/.]")
"""Separates the parts of names, also of tables: ``sales.orders``."""
FOLDERS = re.compile("/")
"""Separates the parts of paths alone: in events names of tables stay whole."""


def short_names(
    names: Iterable[DatasetName], separators: re.Pattern[str] = FOLDERS
) -> dict[DatasetName, str]:
    """Find for each dataset the shortest end of its name that no other dataset's name has.

    An end may begin in the namespace: ``lake/orders`` for ``s3://lake`` and ``orders``.

    :param separators: :data:`FOLDERS` or :data:`PARTS`; an end begins after one of them
    :return: by dataset, the end of its name; if no end is unique, the full name, and if that is the
        full name of two datasets, ``namespace:name``
    """
    unique = {*names}
    full_names = Counter(map(str, unique))
    ends = Counter(chain.from_iterable({*_ends(str(one), separators)} for one in unique))
    return {
        one: next(
            (end for end in _short_ends(one, separators) if ends[end] == 1),
            str(one) if full_names[str(one)] == 1 else f"{one.namespace}:{one.name}",
        )
        for one in unique
    }


def _ends(text: str, separators: re.Pattern[str]) -> list[str]:
    """Give a text, and its ends after a separator, the longest first."""
    ends = (text[separator.end() :] for separator in separators.finditer(text))
    return [text, *(end for end in ends if end and end[0] not in "/.")]


def _short_ends(name: DatasetName, separators: re.Pattern[str]) -> Iterator[str]:
    """Yield the ends by which people know a dataset, the shortest first.

    A dot separates nothing in a namespace, where it is in the name of a host, or in a file's name.
    """
    full, is_table = str(name), not is_files(name)
    for end in reversed(_ends(full, separators)[1:]):
        is_in_name = len(end) <= len(name.name)
        if full[-len(end) - 1] == "/" or (is_table and is_in_name):
            yield end
