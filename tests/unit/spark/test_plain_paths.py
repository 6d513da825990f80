"""Whatever a path looks like: what Spark gets for it is read back as the same file."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.submit import submitted_files
from airflow_provider_sparklineage.spark.submit.submitted_files import Links
from tests import spark_lists

MISREAD = ("c,d", "c[1]", "c[d", "c]d", "{c}", "c#d", "s*t", "q?r", "u:v", "b\\c", "file:x", ",")
"""Names of folders that Spark takes for something else."""
READ = (
    *("b b", " lead", "trail ", "p%20q", "p%zz", "y;z", 'a"b', "a'b", "$HOME", "!e", "a&b", "(a)"),
    *("n\nl", "r\rr", "a\tb", "ü", "日本", "a|b", "a<b", "a^b", "a`b", "..x", "~t", "-x", "a=b+@"),
)
"""Names of folders that Spark reads, if nothing else that starts it misreads them."""


def laid(folder: Path) -> Path:
    """Put a jar into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    jar = folder / "shop.jar"
    jar.write_bytes(b"the jar")
    return jar


@pytest.fixture
def links(tmp_path):
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    return Links(bundle)


@pytest.mark.parametrize("name", MISREAD)
def test_spark_misreads_the_path_itself(tmp_path, name):
    jar = laid(tmp_path / name)
    try:
        read = spark_lists.files(str(jar))
    except ValueError:
        return
    assert read != [str(jar)]


@pytest.mark.parametrize("name", [*MISREAD, *READ])
def test_spark_reads_what_it_gets_as_the_file(tmp_path, links, name):
    jar = laid(tmp_path / name)
    [read] = spark_lists.files(links.entry(str(jar)))
    assert Path(read).samefile(jar)
    assert read.isascii()
    assert ":" not in read  # or PYTHONPATH would be two paths


@given(st.lists(st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=8)))
def test_whatever_the_names_of_folders_are(names):
    with tempfile.TemporaryDirectory() as folder:
        parts = [f"x{n}".encode(errors="replace").decode() for n in names]
        jar = laid(Path(folder, "jars", *parts))
        links = Links(Path(folder))
        [read] = spark_lists.files(links.entry(str(jar)))
        assert Path(read).samefile(jar)


@pytest.mark.parametrize("name", ["c,d", "ü"])
def test_a_plain_path_that_leads_to_another_one_is_followed_before_spark_does(
    tmp_path, links, name
):
    laid(tmp_path / name)
    (tmp_path / "plain").symlink_to(tmp_path / name)
    entry = links.entry(str(tmp_path / "plain" / "shop.jar"))
    [read] = spark_lists.files(entry)
    assert Path(read).read_bytes() == b"the jar"
    assert Path(read).resolve() == Path(read)


@pytest.mark.parametrize(
    "write",
    [str, Path.as_uri, lambda jar: f"local:{jar}", lambda jar: os.path.relpath(jar)],
    ids=["path", "URI", "local", "relative"],
)
def test_an_entry_that_spark_reads_stays_as_it_is(tmp_path, links, monkeypatch, write):
    monkeypatch.chdir(tmp_path)
    entry = write(laid(tmp_path / "jars"))
    assert links.entry(entry) == entry
    assert list((tmp_path / "bundle").iterdir()) == []


def test_a_url_stays_as_it_is(links):
    assert links.entry("s3a://jars/shop.jar") == "s3a://jars/shop.jar"


def test_a_uri_is_decoded_as_spark_does(tmp_path, links):
    jar = laid(tmp_path / "c,d")
    [read] = spark_lists.files(links.entry(jar.as_uri()))
    assert Path(read).samefile(jar)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("file://[a/b.jar", id="no URI"),
        pytest.param("/jars/a\0b.jar", id="a NUL"),
        pytest.param("x" * 5000, id="too long"),
    ],
)
def test_what_can_be_no_file_here_is_left_to_spark(links, entry):
    assert links.entry(entry) == entry


def test_steps_up_are_left_to_the_system_which_follows_links_first(tmp_path, links):
    laid(tmp_path / "real")
    (tmp_path / "real" / "sub").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "sub")
    [read] = spark_lists.files(links.entry(f"{tmp_path}/link/../shop.jar"))
    assert Path(read).read_bytes() == b"the jar"


def test_a_jar_of_another_file_system_is_copied(tmp_path, links, monkeypatch):
    def other_device(*_):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", other_device)
    [read] = spark_lists.files(links.entry(str(laid(tmp_path / "c,d"))))
    assert Path(read).read_bytes() == b"the jar"


def test_jars_of_one_name_get_links_of_two(tmp_path, links):
    entries = {links.entry(str(laid(tmp_path / name))) for name in ("a,", "b,")}
    assert len({Path(entry).name for entry in entries}) == 2


def test_links_are_private_and_go_without_what_they_lead_to(tmp_path, links):
    jar = laid(tmp_path / "c,d")
    links.plain(jar)
    [folder] = (tmp_path / "bundle").iterdir()
    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    links.remove()
    links.remove()
    assert list((tmp_path / "bundle").iterdir()) == []
    assert jar.exists()


def test_links_to_an_odd_bundle_are_in_the_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    bundle = laid(tmp_path / "c,d").parent
    links = Links(bundle)
    assert (links.plain(bundle) / "shop.jar").read_bytes() == b"the jar"
    [folder] = tmp_path.glob(f"{capture.LINKS_PREFIX}*")
    links.remove()
    assert not folder.exists()


def test_links_that_a_killed_worker_left_go_after_their_bundle(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    bundle = laid(tmp_path / "c,d").parent
    Links(bundle).plain(bundle)
    Links(bundle).plain(bundle)
    [one, other] = tmp_path.glob(f"{capture.LINKS_PREFIX}*")
    (one / f"0-{bundle.name.replace(',', '_')}").unlink()  # not yet made
    capture.sweep(tmp_path / "captures", older_than=timedelta(), now=datetime.now(UTC))
    assert other.exists()
    shutil.rmtree(bundle)
    capture.sweep(tmp_path / "captures", older_than=timedelta(), now=datetime.now(UTC))
    assert (one.exists(), other.exists()) == (True, False)


def refused(links: Links, path: Path) -> str:
    with pytest.raises(CaptureError) as error:
        links.plain(path)
    return str(error.value)


def test_where_the_temporary_folder_is_odd_too_both_characters_are_named(tmp_path, monkeypatch):
    odd = laid(tmp_path / "t#t").parent
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    bundle = laid(tmp_path / "c,d").parent
    message = refused(Links(bundle), bundle)
    assert "','" in message
    assert "'#'" in message


def test_a_driver_elsewhere_gets_no_link(tmp_path, links):
    links.forbid("The driver is elsewhere.")
    message = refused(links, laid(tmp_path / "c,d"))
    assert "because of ','" in message
    assert "The driver is elsewhere. Set [sparklineage] capture_location" in message
    assert links.plain(laid(tmp_path / "cd")) == tmp_path / "cd" / "shop.jar"


def test_a_full_disk_is_a_reason(tmp_path, links):
    shutil.rmtree(tmp_path / "bundle")
    assert "No link to it can be made: [Errno 2]" in refused(links, laid(tmp_path / "c,d"))


@pytest.mark.parametrize(
    ("url", "is_plain"),
    [
        ("s3a://jars/shop.jar", True),
        ("s3a://jars/*.jar", True),
        ("https://nexus/a%2Cb.jar?x=1&y=2", True),
        ("s3a://jars/a,b.jar", False),
        ("s3a://jars/a b.jar", False),
        ("s3a://jars/ü.jar", False),
        ("s3a://jars/a%zz.jar", False),
        ("s3a://jars/a.jar#b.jar", False),
        ("s3a://jars/[a].jar", False),
    ],
)
def test_urls_that_spark_takes_for_one(url, is_plain):
    assert submitted_files.is_plain_url(url) is is_plain
