"""What Spark takes a list of ``--jars`` or ``--py-files`` for, in Python.

``SparkSubmitArguments`` resolves it (``Utils.resolveURIs``), ``SparkSubmit`` finds its globs
(``DependencyUtils.resolveGlobPaths``). ``tests/spark/test_paths.py`` compares this with Spark.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

# java.net.URI takes all other characters that are not of ASCII, and no blanks or controls.
_NO_URI = re.compile(r"[\s\x00-\x20\x7f-\xa0\"<>\\^`{|}\[\]]|%(?![0-9A-Fa-f]{2})")
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)", re.DOTALL)
_GLOB = re.compile(r"[][*?{}\\:]")
"""Of a path, what Hadoop takes for a pattern, and the colon, of which it makes no name."""


def files(text: str) -> list[str]:
    """Name the files that a list is for Spark.

    :raise ValueError: if Spark does not start, or finds what a pattern finds
    """
    paths: list[str] = []
    resolved = ",".join(_resolved(e) for e in text.split(",") if e.strip())
    for entry in filter(None, resolved.split(",")):  # it is taken apart each time
        path = unquote(_URI.fullmatch(entry)["path"]) if "://" in entry else entry
        if entry.partition("#")[1] or _GLOB.search(path):
            raise ValueError(entry)
        paths.append(path)
    return paths


_URI = re.compile(r"file://(?P<path>/[^#]*)(?:#.*)?", re.DOTALL)


def _resolved(entry: str) -> str:
    """Give the ``file://`` URI, but with characters as they are that Java leaves in one."""
    scheme = None if _NO_URI.search(entry) else _SCHEME.fullmatch(entry)
    if scheme:
        return (
            entry if scheme["scheme"] != "file" else "file://" + scheme["rest"].removeprefix("//")
        )
    path, mark, fragment = entry.partition("#")
    if mark and not _NO_URI.search(entry):
        return f"file://{_quoted(Path(path).absolute())}#{fragment}"
    return f"file://{_quoted(Path(entry).resolve())}"


def _quoted(path: Path) -> str:
    """Escape as ``java.io.File.toURI`` does, which leaves commas."""
    return re.sub(r"[^\w/.,:;~=+@!$&'()-]", _escape, str(path))


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape"))
