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

from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
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
