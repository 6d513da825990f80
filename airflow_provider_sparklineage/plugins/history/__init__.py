"""The page "Spark lineage" in Airflow's navigation: its files, and the answers that it draws.

The endpoints of the page are in ``plugins/app.py``. They ask the history (``opened.py``), leave out
runs and partitions that the user may not see (``permissions.py``), and answer with JSON
(``answers.py``).

The page itself is TypeScript in ``ui``, which is committed but not shipped; ``make page`` builds it
into ``static``, which is committed and shipped. ``static/sources.json`` has a checksum over all
files that ``make page`` builds from, so that a test without Node fails if a source was changed and
the page was not built.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
SOURCES = Path(__file__).parent / "ui"
_SHARED = ("../../page/calendar.js",)
"""Modules that the page shares with the tab; the paths are relative to ``ui``."""
_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@cache
def files() -> dict[str, str]:
    """Give the names of the files that are served, with their media types."""
    return {
        path.name: _TYPES[path.suffix] for path in sorted(STATIC.iterdir()) if path.suffix in _TYPES
    }


def content(file: str) -> bytes:
    """Read a file that is served.

    :param file: a name in :func:`files`
    """
    return (STATIC / file).read_bytes()


def is_of_one_content(file: str) -> bool:
    """Whether a file's name contains a checksum, so that browsers may keep the file forever."""
    return "-" in file


def checksum(folder: Path = SOURCES) -> str:
    """Give SHA-256, in hex, over names and contents of all files that the page is built from.

    ``ui/sources.mjs`` computes the same during the build.
    """
    found = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    own = (name for name in found if not name.startswith("node_modules/"))
    digests = (
        f"{name} {_sha256((folder / name).read_bytes())}\n" for name in sorted([*own, *_SHARED])
    )
    return _sha256("".join(digests).encode())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
