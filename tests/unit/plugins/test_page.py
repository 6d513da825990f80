"""The page as one file: complete, and closed to what an event may contain."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re

import pytest

from airflow_provider_sparklineage.plugins import page

EVENT = {"job": {"namespace": "n", "name": "shop.revenue"}, "run": {"facets": {}}}


def embedded(html):
    return re.search(r'<script id="events" type="application/gzip">(.*?)</script>', html, re.S)[1]


def script(html):
    return re.search(r'<script type="module">(.*?)</script>', html, re.S)[1]


@pytest.mark.parametrize(
    "name",
    [
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "a\0b",
        "\u2028\u202e\ud800",
        "&lt;",
        "",
    ],
)
def test_an_event_stays_what_it_is_and_ends_nothing(name):
    event = EVENT | {"job": {"namespace": "n", "name": name}}
    html = page.self_contained([event])
    assert json.loads(gzip.decompress(base64.b64decode(embedded(html)))) == [event]
    assert html.count("<script") == html.count("</script>") == 2
    html.encode()


def test_one_event_is_always_the_same_file():
    assert page.self_contained([EVENT]) == page.self_contained([EVENT])
    stamp = gzip.compress(b"", mtime=0)[4:8]
    assert base64.b64decode(embedded(page.self_contained([EVENT])))[4:8] == stamp


def test_only_the_script_of_the_page_may_run():
    html = page.self_contained([EVENT])
    digest = base64.b64encode(hashlib.sha256(script(html).encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in html


def test_one_file_needs_no_other():
    html = page.self_contained([EVENT])
    assert not re.search(r"^\s*(import|export)\b", script(html), re.M)
    urls = set(re.findall(r"""https?://[^"'\s]+""", html))
    assert urls == {"http://www.w3.org/2000/svg"}  # a name, asked for by nobody
    assert not re.search(r"""\b(src|href)=|url\(|@import""", html)


def test_a_module_needs_only_modules_that_are_served():
    needed = {
        name
        for file in page.FILES
        for name in re.findall(r'(?:from |import\()"\./([a-z]+\.js)"', page.content(file))
    }
    assert needed
    assert needed <= set(page.FILES)


def test_nothing_is_put_in_as_markup():
    for file in (*page.FILES, "file.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", page.content(file)
        )


def test_modules_have_no_name_in_common():
    """In one file they are one module."""
    declared = re.compile(r"^(?:export )?(?:const|let|function|class) (\w+)", re.M)
    names = [
        name
        for file in (*page.FILES, "file.js")
        if file.endswith(".js") and file not in ("tab.js", "task.js", "waiting.js")
        for name in declared.findall(page.content(file))
    ]
    assert sorted(names) == sorted(set(names))
