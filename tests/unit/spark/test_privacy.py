"""A folder is this user's alone only if no folder and no link on the way to it is another's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture import ownership
from airflow_provider_sparklineage.spark.capture.bundle import Manifest

only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
NOBODY = 65534


@pytest.fixture
def parent(tmp_path):
    """Make a folder above the captures, whose own is private."""
    folder = tmp_path / "parent"
    (folder / "captures").mkdir(parents=True, mode=0o700)
    (folder / "captures").chmod(0o700)
    return folder


def exposed(parent):
    return ownership.exposed(parent / "captures")


def test_a_private_folder_below_folders_of_root_and_this_user_is_nobody_elses(parent):
    assert exposed(parent) is None


@pytest.mark.parametrize(
    ("mode", "is_exposed"),
    [
        pytest.param(0o755, False, id="readable"),
        pytest.param(0o777, True, id="writable for all"),
        pytest.param(0o1777, False, id="sticky, as /tmp"),
        pytest.param(0o703, True, id="writable for all but the group"),
        pytest.param(0o775, False, id="writable for the worker's own group"),
    ],
)
def test_the_mode_of_a_folder_above(parent, mode, is_exposed):
    parent.chmod(mode)
    assert exposed(parent) == (parent if is_exposed else None)


@only_root
@pytest.mark.parametrize("mode", [0o700, 0o777, 0o1777])
def test_a_folder_above_that_is_another_users(parent, mode):
    parent.chmod(mode)
    os.chown(parent, NOBODY, -1)
    assert exposed(parent) == parent


@only_root
@pytest.mark.parametrize("folder", ["parent", "parent/captures"])
def test_another_owner_is_allowed_where_the_workers_group_can_write(parent, folder):
    """Airflow's image has /opt/airflow like this, and runs as any user of the group root."""
    folder = parent.parent / folder
    folder.chmod(0o775)
    os.chown(folder, NOBODY, os.getegid())
    assert exposed(parent) == (None if folder == parent else folder)


@only_root
def test_a_folder_above_that_a_group_of_others_can_write_to(parent):
    parent.chmod(0o775)
    os.chown(parent, -1, 12345)
    assert exposed(parent) == parent


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_the_folder_itself_is_for_no_group(parent, mode):
    (parent / "captures").chmod(mode)
    assert exposed(parent) == parent / "captures"


def test_a_link_is_followed_to_what_is_above_its_target(parent, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(Path("parent", "..", "parent", "captures"))
    assert ownership.exposed(link) is None
    parent.chmod(0o777)
    assert ownership.exposed(link) == tmp_path / "parent"


@only_root
def test_a_link_of_another_user_on_the_way(parent, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(parent)
    assert ownership.exposed(link / "captures") is None
    os.chown(link, NOBODY, -1, follow_symlinks=False)
    assert ownership.exposed(link / "captures") == link


@pytest.mark.parametrize("owner", [os.getuid(), pytest.param(NOBODY, marks=only_root)])
def test_a_volume_of_a_pod_is_its_containers_alone(parent, monkeypatch, owner):
    parent.chmod(0o777)
    os.chown(parent, owner, -1)
    monkeypatch.setattr(Path, "is_mount", lambda path: path == parent)
    assert exposed(parent) == parent
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert exposed(parent) is None
    monkeypatch.setattr(Path, "is_mount", lambda _: False)
    assert exposed(parent) == parent


def test_the_message_names_the_folder_and_what_could_be_replaced(parent):
    parent.chmod(0o777)
    with pytest.raises(capture.CaptureError) as refused:
        capture.create(parent / "captures", Manifest(application_run_id="r"))
    assert str(parent) in refused.value.problem
    assert f"So they could replace {parent / 'captures'}." in refused.value.problem
    assert "sticky" in refused.value.fix
