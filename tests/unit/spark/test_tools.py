"""The tools folder of a capture location: filled once, checked, and swept when nobody needs it."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.spark.capture import tools
from airflow_provider_sparklineage.spark.capture.bundle import CaptureLocation, Manifest
from airflow_provider_sparklineage.spark.capture.tools import UNUSED, Tools
from tests.local_store import URL, LocalStore

DAY = datetime(2026, 5, 6, 12, tzinfo=UTC)
CONTENT = b"a jar"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def root(tmp_path):
    """Give the folder that the location's URL names."""
    return tmp_path / "lake"


@pytest.fixture
def location(tmp_path, root, monkeypatch):
    LocalStore(root).install(monkeypatch)
    return CaptureLocation(tmp_path / "own", URL)


@pytest.fixture
def folder(root):
    return root / ".tools" / DIGEST


@pytest.fixture
def of(location):
    def make(driver="yarn etl", in_spark="s3a://lake", budget=UNLIMITED):
        return Tools(location, in_spark, driver, budget)

    return make


def note(marks, *, has_reported):
    reached, unreached = marks
    manifest = Manifest("run", reached_tools=reached, unreached_tools=unreached)
    tools.note(manifest, UNLIMITED, has_reported=has_reported)


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_a_file_is_put_there_by_its_digest_and_named_as_spark_does(of, folder):
    tool = of(in_spark="s3a://lake/x").put("a.jar", CONTENT, DAY)
    assert tool.url == f"s3a://lake/x/.tools/{DIGEST}/a.jar"
    assert (folder / "a.jar").read_bytes() == CONTENT
    assert names(folder) == ["a.jar", "used-2026-05-06"]


def test_a_file_of_this_machine_is_the_same_as_its_content(of, folder, tmp_path):
    (tmp_path / "a.jar").write_bytes(CONTENT)
    assert of().put("a.jar", tmp_path / "a.jar", DAY) == of().put("a.jar", CONTENT, DAY)
    assert names(folder) == ["a.jar", "used-2026-05-06"]


@pytest.mark.parametrize("mount", ["file:///mnt/lake", "file:/mnt/lake"])
def test_on_a_mount_it_is_no_file_to_upload(of, mount):
    url = of(in_spark=mount).put("a.jar", CONTENT).url
    assert url == f"local:///mnt/lake/.tools/{DIGEST}/a.jar"


def test_what_is_there_is_not_written_again(of, folder):
    of().put("a.jar", CONTENT, DAY)
    before = (folder / "a.jar").stat()
    of().put("a.jar", CONTENT, DAY)
    after = (folder / "a.jar").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_a_torn_file_is_written_again(of, folder):
    of().put("a.jar", CONTENT, DAY)
    (folder / "a.jar").write_bytes(CONTENT[:2])
    of().put("a.jar", CONTENT, DAY)
    assert (folder / "a.jar").read_bytes() == CONTENT


def test_many_workers_at_once_put_it_there_whole(of, folder):
    with ThreadPoolExecutor(8) as threads:
        urls = {tool.url for tool in threads.map(lambda _: of().put("a.jar", CONTENT), range(8))}
    assert len(urls) == 1
    assert (folder / "a.jar").read_bytes() == CONTENT
    assert len(names(folder)) == 2


def test_the_mark_of_use_is_that_of_the_last_day(of, folder):
    for day in (DAY, DAY, DAY + timedelta(days=1)):
        of().put("a.jar", CONTENT, day)
    assert names(folder) == ["a.jar", "used-2026-05-07"]


def test_a_driver_that_has_delivered_is_noted_for_all_like_it(of, folder):
    first = of()
    assert not first.put("a.jar", CONTENT).is_reached
    note(first.marks, has_reported=True)
    again = of()
    assert again.put("a.jar", CONTENT).is_reached
    assert again.marks == (first.marks.unreached, ())
    assert not of("yarn guest").put("a.jar", CONTENT).is_reached


def test_a_new_observer_is_reached_where_the_listener_is(of):
    first = of()
    first.put("a.jar", CONTENT)
    note(first.marks, has_reported=True)
    upgraded = of()
    assert upgraded.put("a.jar", CONTENT).is_reached
    assert upgraded.put("observer.zip", b"new").is_reached
    assert len(upgraded.marks.unreached) == 1


def test_a_driver_that_has_delivered_nothing_takes_that_back(of, folder):
    first = of()
    first.put("a.jar", CONTENT)
    note(first.marks, has_reported=False)  # nothing was noted yet
    note(first.marks, has_reported=True)
    second = of()
    second.put("a.jar", CONTENT)
    note(second.marks, has_reported=False)
    assert not of().put("a.jar", CONTENT).is_reached


def test_what_cannot_be_written_is_an_error_with_the_place(of, root):
    root.write_text("a file")
    with pytest.raises(CaptureError, match="could not be put into the tools folder") as caught:
        of().put("a.jar", CONTENT)
    assert "store://lake/lineage/.tools" in str(caught.value)


def test_without_time_nothing_is_waited_for(of):
    with pytest.raises(CaptureError, match="no time left"):
        of(budget=Budget(lambda: 0.0)).put("a.jar", CONTENT)


def test_a_jar_that_is_gone_is_an_error(of, tmp_path):
    with pytest.raises(CaptureError, match=r"a\.jar cannot be read"):
        of().put("a.jar", tmp_path / "a.jar")


@pytest.mark.parametrize(
    ("later", "left"),
    [(UNUSED, True), (UNUSED + timedelta(days=1), False)],
)
def test_a_file_that_nobody_has_needed_for_long_is_deleted(of, location, folder, later, left):
    of().put("a.jar", CONTENT, DAY)
    assert tools.sweep(location.url, now=DAY + later, budget=UNLIMITED) == int(not left)
    assert folder.exists() is left


def test_a_sweep_leaves_what_is_not_ours(of, location, folder):
    of().put("a.jar", CONTENT, DAY)
    others = [folder.parent / "shop", folder.parent / ("0" * 64)]  # a name, and a folder unmarked
    for other in others:
        other.mkdir()
        (other / "a.jar").write_bytes(CONTENT)
    assert tools.sweep(location.url, now=DAY + 10 * UNUSED, budget=UNLIMITED) == 1
    assert all(other.exists() for other in others)


def test_a_location_without_tools_is_swept_in_vain(location):
    assert tools.sweep(location.url, now=DAY, budget=UNLIMITED) == 0
