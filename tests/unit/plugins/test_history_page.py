"""The page as it is shipped: built of these sources, small, and closed to other servers."""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from hashlib import sha256
from pathlib import Path, PurePosixPath

from airflow_provider_sparklineage.plugins import history

SOURCES = history.STATIC.with_name("ui")
SHARED = ("../../page/calendar.js",)
"""Modules that the page shares with the tab; the paths are relative to ``ui``."""
TOO_LARGE = 600_000
# Names of XML, and pages that messages for developers name; asked for by nobody.
NAMED = re.compile(r"http://www\.w3\.org/|https://(react\.dev|reactflow\.dev|\$\{\w+\}flow\.dev)")


def checksum(folder: Path = SOURCES) -> str:
    """Give SHA-256, in hex, over names and contents of all files that the page is built from.

    ``ui/sources.mjs`` computes the same during the build.
    """
    found = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    own = (name for name in found if not name.startswith("node_modules/"))
    digests = (
        f"{name} {sha256((folder / name).read_bytes()).hexdigest()}\n"
        for name in sorted([*own, *SHARED])
    )
    return sha256("".join(digests).encode()).hexdigest()


def test_it_was_built_of_these_sources():
    of = json.loads((history.STATIC / "sources.json").read_text())["sha256"]
    assert of == checksum(), "run `make page`"


def test_a_change_of_any_source_is_seen(tmp_path):
    ui = tmp_path / "plugins" / "history" / "ui"
    shared = tmp_path / "plugins" / "page" / "calendar.js"
    for file in (ui / "src" / "App.tsx", shared):
        file.parent.mkdir(parents=True)
        file.write_text("1")
    sums = [checksum(ui)]
    for file in (shared, ui / "src" / "App.tsx", ui / ".npmrc"):
        file.write_text("2")
        sums.append(checksum(ui))
    assert len(set(sums)) == 4


def test_a_wheel_has_what_was_built_and_nothing_that_node_is_needed_for(wheel):
    page = PurePosixPath("airflow_provider_sparklineage/plugins/history")
    with zipfile.ZipFile(wheel) as shipped:
        names = list(map(PurePosixPath, shipped.namelist()))
        kept = {n.name: shipped.read(str(n)) for n in names if n.parent == page / "static"}
    assert kept == {file.name: file.read_bytes() for file in history.STATIC.iterdir()}
    assert [name for name in names if page / "ui" in name.parents] == []
    assert {name.suffix for name in names} & {".ts", ".tsx", ".mjs"} == set()


def test_the_browser_gets_less_than_600_kb():
    sizes = {name: len(gzip.compress(history.content(name))) for name in history.files()}
    assert "page.js" in sizes
    assert sum(sizes.values()) < TOO_LARGE


def test_nothing_in_it_is_asked_of_another_server():
    for name in history.files():
        if name.endswith(".js"):
            text = history.content(name).decode()
            found = set(re.findall(r"https?://[^\"'` )]+", text))
            assert {url for url in found if not NAMED.match(url)} == set()
            assert "@import" not in text


def test_every_library_in_it_has_its_licence_in_the_notice():
    notice = history.content("NOTICE.txt").decode()
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
    kept = [name for name in history.files() if history.is_of_one_content(name)]
    assert kept
    assert "page.js" not in kept
    assert all(re.fullmatch(r"\w+-[\w-]{8}\.js", name) for name in kept)
