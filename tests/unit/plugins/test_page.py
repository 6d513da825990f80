"""Tab, page and file as they are shipped: built of these sources, small, and closed to others."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import zipfile
from hashlib import sha256
from pathlib import Path, PurePosixPath

import pytest

from airflow_provider_sparklineage.plugins import page

SOURCES = page.STATIC.with_name("ui")
TOO_LARGE, TOO_LARGE_PACKED = 700_000, 220_000
EVENT = {"job": {"namespace": "n", "name": "shop.revenue"}, "run": {"facets": {}}}
# Names of XML, and pages that messages for developers name; asked for by nobody.
NAMED = re.compile(r"http://www\.w3\.org/|https://(react\.dev|reactflow\.dev|\$\{\w+\}flow\.dev)")


def checksum(folder: Path = SOURCES) -> str:
    """Give SHA-256, in hex, over names and contents of all files that the page is built from.

    ``ui/sources.mjs`` computes the same during the build.
    """
    found = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    digests = (
        f"{name} {sha256((folder / name).read_bytes()).hexdigest()}\n"
        for name in sorted(name for name in found if not name.startswith("node_modules/"))
    )
    return sha256("".join(digests).encode()).hexdigest()


def text(file: str) -> str:
    return page.content(file).decode()


def needed(file: str) -> set[str]:
    """Find the files that a script loads, itself or by those that it loads."""
    found, new = set(), {file}
    while new:
        found |= new
        new = {n for one in new for n in re.findall(r"[`\"']\./([\w.-]+\.js)[`\"']", text(one))}
        new -= found
    return found


def strangers(script: str) -> set[str]:
    """Find the addresses of other servers in a script."""
    return {url for url in re.findall(r"https?://[^\"'` )]+", script) if not NAMED.match(url)}


# --- what is shipped ------------------------------------------------------------------------------


def test_it_was_built_of_these_sources():
    of = json.loads((page.STATIC / "sources.json").read_text())["sha256"]
    assert of == checksum(), "run `make page`"


def test_a_change_of_any_source_is_seen(tmp_path):
    for name in ("src/App.tsx", "src/task/model.ts"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    sums = [checksum(tmp_path)]
    for name in ("src/task/model.ts", "src/App.tsx", ".npmrc"):
        (tmp_path / name).write_text("2")
        sums.append(checksum(tmp_path))
    assert len(set(sums)) == 4


def test_a_wheel_has_what_was_built_and_nothing_that_node_is_needed_for(wheel):
    plugins = PurePosixPath("airflow_provider_sparklineage/plugins")
    with zipfile.ZipFile(wheel) as shipped:
        names = list(map(PurePosixPath, shipped.namelist()))
        kept = {n.name: shipped.read(str(n)) for n in names if n.parent == plugins / "static"}
    assert kept == {file.name: file.read_bytes() for file in page.STATIC.iterdir()}
    assert [name for name in names if plugins / "ui" in name.parents] == []
    assert {name.suffix for name in names} & {".ts", ".tsx", ".mjs", ".css"} == set()


@pytest.mark.parametrize("entrance", ["tab.js", "page.js", "file.js"])
def test_the_browser_gets_few_kilobytes(entrance):
    files = [page.content(name) for name in needed(entrance)]
    assert sum(map(len, files)) < TOO_LARGE
    assert sum(len(gzip.compress(file)) for file in files) < TOO_LARGE_PACKED


def test_the_tab_shows_its_skeleton_without_another_file():
    assert not re.search(r"\bimport[ {]|\bfrom[`\"']", text("tab.js"))


def test_what_draws_the_history_is_not_loaded_for_a_task():
    (of_tab,) = (name for name in page.files() if name.startswith("TaskTab-"))
    for file in ("file.js", *needed(of_tab)):
        assert not re.search("react-flow|dagre", text(file))


def test_each_file_that_is_needed_is_served():
    assert needed("tab.js") | needed("page.js") == {n for n in page.files() if n.endswith(".js")}
    assert needed("file.js") == {"file.js"}


def test_nothing_in_it_is_asked_of_another_server():
    for name in ("file.js", *page.files()):
        if name.endswith(".js"):
            assert strangers(text(name)) == set()
            assert "@import" not in text(name)


def test_nothing_is_put_in_as_markup():
    sources = [file for file in (SOURCES / "src").rglob("*") if file.suffix in (".ts", ".tsx")]
    assert len(sources) > 20
    markup = re.compile(r"[iI]nnerH[tT]|outerHTML|insertAdjacent|document\.write|eval\(")
    assert [file.name for file in sources if markup.search(file.read_text())] == []


def test_every_library_in_it_has_its_licence_in_the_notice():
    notice = text("NOTICE.txt")
    wanted = json.loads((SOURCES / "package.json").read_text())["dependencies"]
    for name, version in wanted.items():
        assert re.search(rf"^{re.escape(name)} {re.escape(version)} \((MIT|ISC)\)$", notice, re.M)
    assert len(re.findall(r"^[@\w/-]+ [\d.]+ \((?:MIT|ISC)\)$", notice, re.M)) > len(wanted)


def test_the_lock_file_names_no_registry():
    lock = json.loads((SOURCES / "package-lock.json").read_text())
    assert [name for name, one in lock["packages"].items() if "resolved" in one] == []
    assert all("integrity" in one for name, one in lock["packages"].items() if name)


def test_versions_are_exact():
    package = json.loads((SOURCES / "package.json").read_text())
    versions = [*package["dependencies"].values(), *package["devDependencies"].values()]
    assert [version for version in versions if not re.fullmatch(r"[\d.]+", version)] == []


def test_only_a_name_with_a_checksum_may_be_kept():
    kept = [name for name in page.files() if page.is_of_one_content(name)]
    assert kept
    assert not {"page.js", "tab.js"} & set(kept)
    assert all(re.fullmatch(r"[\w-]+-[\w-]{8}\.js", name) for name in kept)


# --- the page as one file -------------------------------------------------------------------------


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
    assert "<!--" not in html
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
    assert script(html) == text("file.js")
    assert not re.search(r"(^|[;}])\s*(import|export)\b|\bimport\(", script(html))
    around = html.replace(script(html), "")
    assert not re.search(r"""\b(src|href)=|url\(|@import|https?://""", around)
