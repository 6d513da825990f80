"""The page that shows a merged event, in Airflow's tab and as one file.

It is plain ES modules and one style sheet, served and shipped as they are::

    tab.js, file.js   the two ways to show it; task.js: the tab's requests to Airflow
    waiting.js        a try without lineage (yet): the expected accesses, and the last run
    view.js           all of the page; the missing parts
    search.js         the search for datasets and columns
    flow.js, card.js  datasets in, task, datasets out
    strip.js          the last dates of a dataset as squares
    squares.js        the dates that get a square; calendar.js: dates in values of partitions
    partitions.js     partitions, expected and observed; table.js: the table
    columns.js        the columns; those in the lineage of a chosen column come first
    pane.js           the columns of the inputs, or of the outputs
    explanation.js    the sources of the chosen column
    windowed.js       a list that draws only its visible part
    fold.js           the first entries of a long list, until somebody asks for all
    near.js           only the entries of a long list that are near to the visible part
    model.js          an event to the values that are drawn: pure
    edges.js          the sources of columns; values.js: values of an event, whatever their shape
    dom.js            elements of text: no name becomes markup
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHARED = (
    *("values.js", "edges.js", "calendar.js", "squares.js", "model.js"),
    *("dom.js", "fold.js", "near.js", "windowed.js", "search.js"),
    *("explanation.js", "pane.js", "columns.js", "table.js", "partitions.js"),
    *("card.js", "flow.js", "strip.js", "view.js"),
)
"""Modules in the order in which they need each other."""
FILES = {
    **dict.fromkeys((*_SHARED, "waiting.js", "task.js", "tab.js"), "text/javascript"),
    "page.css": "text/css",
}
"""The files of the tab, with their media types."""

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./[a-z]+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const |function |class )", re.MULTILINE)

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
{css}</style>
</head>
<body>
<main class="sparklineage"></main>
<script id="events" type="application/gzip">{events}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def content(file: str) -> str:
    """Read a file of the page."""
    return (resources.files(__package__) / file).read_text(encoding="utf-8")


def self_contained(events: Sequence[dict[str, Any]]) -> str:
    """Make one HTML file that shows these merged events, and loads no other file."""
    # One script with all modules needs none of their imports and exports.
    modules = map(content, (*_SHARED, "file.js"))
    script = "".join(_EXPORT.sub("", _IMPORT.sub("", module)) for module in modules)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _HTML.format(
        digest=digest, css=content("page.css"), events=_packed(events), script=script
    )


def _packed(value: object) -> str:
    """Write a value as JSON in gzip and Base64, which is about a tenth of the JSON alone.

    Base64 has no character that could end a script element.
    """
    # Without a time, so that the same event always gives the same file.
    return base64.b64encode(
        gzip.compress(json.dumps(value).encode(), compresslevel=6, mtime=0)
    ).decode()
