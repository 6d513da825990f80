"""The half that ships to the driver: old syntax, nothing of ours imported, the same bytes."""

import ast
import io
import sys
import zipfile

import pytest

from airflow_provider_sparklineage.spark import driver_zip

MODULES = [driver_zip.DRIVER / "sitecustomize.py"]
MODULES += sorted((driver_zip.DRIVER / "sparklineage_observer").glob("*.py"))


@pytest.fixture(params=MODULES, ids=lambda m: m.stem)
def tree(request):
    return ast.parse(request.param.read_text(), feature_version=(3, 8))


def test_it_is_python_3_8_and_imports_only_what_a_driver_has(tree):
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {a.name.split(".")[0] for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module.split(".")[0])
    allowed = {"sparklineage_observer", "pyspark", "py4j"} | sys.stdlib_module_names
    assert imported <= allowed


def test_pyspark_is_never_imported_by_a_module(tree):
    names = {a.name for n in tree.body if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in tree.body if isinstance(n, ast.ImportFrom)}
    assert not {n for n in names if n.split(".")[0] in ("pyspark", "py4j")}


def test_the_zip_is_the_same_each_time_and_complete():
    first = driver_zip.content()
    assert first == driver_zip.content()
    names = zipfile.ZipFile(io.BytesIO(first)).namelist()
    assert names == [m.relative_to(driver_zip.DRIVER).as_posix() for m in MODULES]


def test_the_zip_is_replaced_and_private(tmp_path):
    driver_zip.write(tmp_path)
    path = driver_zip.write(tmp_path)
    assert path.read_bytes() == driver_zip.content()
    assert oct(path.stat().st_mode & 0o777) == "0o600"


@pytest.fixture
def observer(monkeypatch):
    """Give the observer's package as the driver has it, and forget it afterwards."""
    monkeypatch.syspath_prepend(str(driver_zip.DRIVER))
    before = set(sys.modules)
    import sparklineage_observer

    yield sparklineage_observer
    for name in set(sys.modules) - before:
        if name.startswith("sparklineage_observer"):
            del sys.modules[name]


def test_beyond_its_size_the_file_ends_with_a_word_about_it(observer, tmp_path):
    from sparklineage_observer.records import Limits, Records

    file = tmp_path / "observations.ndjson"
    records = Records(str(file), Limits("total_bytes=40"))
    for _ in range(5):
        records.write({"kind": "query"})
    lines = file.read_text().splitlines()
    assert lines[:2] == ['{"kind":"query"}', '{"kind":"query"}']
    assert lines[2:] == ['{"kind": "cut", "cut": ["observations exceed 40 bytes"]}']
    assert oct(file.stat().st_mode & 0o777) == "0o600"


def test_limits_are_set_by_name_and_others_ignored(observer):
    from sparklineage_observer.records import Limits

    limits = Limits("partitions=7, seconds=0.5, nonsense=1,")
    assert (limits.partitions, limits.seconds) == (7, 0.5)
    assert not hasattr(limits, "nonsense")


def test_partitions_are_read_off_a_folder(observer):
    from sparklineage_observer.jvm import split_directory

    folder = "file:/t/dt=a%2Fb/region=__HIVE_DEFAULT_PARTITION__"
    assert split_directory(folder, ["dt", "region"]) == ("file:/t", ("a/b", None))
    assert split_directory(folder, ["DT", "Region"]) == ("file:/t", ("a/b", None))
    assert split_directory("file:/moved", ["dt"]) is None
    assert split_directory("file:/t", []) == ("file:/t", ())


def delta_actions(mode, *files, **parameters):
    return {"operationParameters": {"mode": mode, **parameters}, "timestamp": 1}, list(files)


def delta_file(day, *, change=True, key="add"):
    values = {} if day is None else {"dt": day}
    return {key: {"partitionValues": values, "dataChange": change}}


@pytest.mark.parametrize(
    ("version", "info", "expected"),
    [
        (0, delta_actions("Overwrite", delta_file("1")), "create"),
        (1, delta_actions("Append", delta_file("1")), "append"),
        (1, delta_actions("Overwrite", delta_file(None)), "whole"),
        (1, delta_actions("Overwrite", delta_file("1")), "dynamic"),
        (1, delta_actions("Overwrite", delta_file("1"), predicate="dt = 1"), "rows"),
        (1, delta_actions("", delta_file("1")), "rows"),
    ],
)
def test_the_mode_of_a_delta_commit_claims_no_more_than_the_log_says(
    observer, version, info, expected
):
    from sparklineage_observer.delta import _write

    assert _write("/t", version, *info, {})["mode"] == expected


def test_a_delta_commit_that_changes_no_data_is_no_write(observer):
    from sparklineage_observer.delta import _write

    files = [delta_file("1", change=False), delta_file("1", change=False, key="remove")]
    assert _write("/t", 3, *delta_actions("", *files), {}) is None


@pytest.mark.parametrize(
    ("path", "values", "complete", "columns"),
    [
        (
            "dt=__HIVE_DEFAULT_PARTITION__/a%2520b=x%253D/f.parquet",
            {"a b": "x="},
            (),
            ("dt", "a b"),
        ),
        ("f.parquet", {}, ("dt",), ()),
        ("R4/f.parquet", {}, ("dt",), ("dt",)),
        ("R4/f.parquet", {"dt": "x"}, (), ("dt",)),
        ("file:/k=v/dt=x/f.parquet", {"dt": "x"}, (), ("dt",)),
    ],
)
def test_a_delta_file_has_its_partition_columns_where_nulls_are_left_out(
    observer, path, values, complete, columns
):
    from sparklineage_observer import delta

    assert delta._columns(path, values, complete) == columns


def test_a_file_status_may_have_semicolons_in_its_path(observer):
    from unittest.mock import Mock

    from sparklineage_observer import jvm

    said = (
        "Array(FileStatus{path=file:/lake/a=x;y; isDirectory=true; modification_time=7; z},"
        " FileStatus{path=file:/lake/a=x/f; isDirectory=false; length=3; modification_time=8})"
    )
    java = Mock(**{"scala.runtime.ScalaRunTime.stringOf.return_value": said})
    assert jvm.statuses(java, []) == [
        ("file:/lake/a=x;y", True, 0, 7),
        ("file:/lake/a=x/f", False, 3, 8),
    ]
