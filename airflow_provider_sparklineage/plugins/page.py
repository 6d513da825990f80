"""The files of the tab, of the page of the history, and of the page as one file.

They are one application in TypeScript: its sources are in ``ui``, which is committed but not
shipped; ``make page`` builds it into ``static``, which is committed and shipped. It has three
entrances::

    src/tab.ts    what Airflow loads: it shows the tab of a task (src/task/), or the page
    src/page.ts   the page of the history, which spans runs
    src/file.tsx  a task's lineage as one file, which asks no server for anything

``src/shared/`` has what they have in common: lists that draw only what is in view, squares and
dates, names, colours. ``static/sources.json`` has a checksum over all files that ``make page``
builds from, so that a test without Node fails if a source was changed and the page was not built.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".js": "text/javascript",
    ".txt": "text/plain; charset=utf-8",
}
_FILE = "file.js"
"""The script of the page as one file, which no server is asked for."""

_HTML = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'sha256-{digest}'">
<title>Spark lineage</title>
<style>
body {{ margin: 0; }}
</style>
</head>
<body>
<main class="sparklineage"></main>
<script id="events" type="application/gzip">{events}</script>
<script type="module">{script}</script>
</body>
</html>
"""


@cache
def files() -> dict[str, str]:
    """Give the names of the files that are served, with their media types."""
    return {
        path.name: _TYPES[path.suffix]
        for path in sorted(STATIC.iterdir())
        if path.suffix in _TYPES and path.name != _FILE
    }


def content(file: str) -> bytes:
    """Read a file that is served.

    :param file: a name in :func:`files`
    """
    return (STATIC / file).read_bytes()


def is_of_one_content(file: str) -> bool:
    """Whether a file's name contains a checksum, so that browsers may keep the file forever."""
    return "-" in file


def self_contained(events: Sequence[dict[str, Any]]) -> str:
    """Make one HTML file that shows these merged events, and loads no other file."""
    script = content(_FILE).decode()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _HTML.format(digest=digest, events=_packed(events), script=script)


def _packed(value: object) -> str:
    """Write a value as JSON in gzip and Base64, which is about a tenth of the JSON alone.

    Base64 has no character that could end a script element.
    """
    # Without a time, so that the same event always gives the same file.
    return base64.b64encode(
        gzip.compress(json.dumps(value).encode(), compresslevel=6, mtime=0)
    ).decode()
