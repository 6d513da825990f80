"""Names must equal the listener's, or what Airflow knows and what Spark reports do not meet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.datasets import (
    DatasetName,
    Naming,
    canonical,
    is_database,
    is_files,
    looks_like_file,
    untrimmed,
)

trim = Naming().trim


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/t/2024-05-06", "/t"),
        ("/t/20240506", "/t"),
        ("/t/06.05.2024", "/t"),
        ("/t/2024-05-06T10:00:00", "/t"),
        ("/t/2024-05", "/t"),
        ("/t/202405", "/t"),
        ("/lake/t/2024/05", "/lake/t"),
        ("/lake/t/2024/05/06", "/lake/t"),
        ("/lake/t/k=v/2024-05-06", "/lake/t"),
        ("/t/2024-13-45", "/t/2024-13-45"),
        ("/t/2024-02-30", "/t"),  # Java's lenient resolver: the last of February
        ("/t/2024-02-32", "/t/2024-02-32"),
        ("/t/0001-01-01", "/t"),
        ("/t/0000-01-01", "/t/0000-01-01"),
        ("/t/1970-01-01", "/t"),
        ("/t/2024-W19", "/t/2024-W19"),
        ("2024/05/06", "2024/05/06"),
        ("/2024/05", "/2024/05"),
        ("/t/x_20240506", "/t/x_20240506"),
        ("/t/2024-05-06/10", "/t/2024-05-06/10"),
        ("/t/a=b=c", "/t/a=b=c"),
        ("/dt=2024-05-06", "/dt=2024-05-06"),
        ("t", "t"),
        ("", ""),
    ],
)
def test_partition_directories_are_trimmed(name, expected):
    assert trim(name) == expected


SEGMENTS = st.sampled_from(
    ["lake", "t", "dt=1", "2024-05-06", "2024", "05", "06", "202405", "a=b=c", "x"]
)


@given(st.lists(SEGMENTS, min_size=1, max_size=6).map("/".join))
def test_trimming_is_a_fixpoint_and_leaves_a_prefix(name):
    trimmed = trim(name)
    assert trim(trimmed) == trimmed
    assert trimmed
    assert name == trimmed or name.startswith(f"{trimmed}/")


CONF = "spark.openlineage.dataset"
TRIMMER = "io.openlineage.client.dataset.partition.trimmer"


@pytest.mark.parametrize(
    ("disabled", "name", "expected"),
    [
        pytest.param(f"{TRIMMER}.KeyValueTrimmer", "/t/dt=1", "/t/dt=1", id="key value"),
        pytest.param(f"{TRIMMER}.DateTrimmer", "/t/2024-05-06", "/t/2024-05-06", id="date"),
        pytest.param(f"{TRIMMER}.DateTrimmer", "/t/dt=1", "/t", id="another one stays on"),
        pytest.param(f"{TRIMMER}.YearMonthTrimmer", "/t/202405", "/t/202405", id="year-month"),
        pytest.param(
            f"{TRIMMER}.MultiDirDateTrimmer", "/l/t/2024/05/06", "/l/t/2024/05/06", id="family"
        ),
        pytest.param(
            f"{TRIMMER}.DateTrimmer; {TRIMMER}.KeyValueTrimmer",
            "/t/dt=1/2024-05-06",
            "/t/dt=1/2024-05-06",
            id="two",
        ),
        pytest.param("DateTrimmer", "/t/2024-05-06", "/t", id="not the class's full name"),
    ],
)
def test_trimmers_that_the_user_disabled_do_not_trim(disabled, name, expected):
    assert Naming.from_properties({f"{CONF}.disabledTrimmers": disabled}).trim(name) == expected


def test_trimmers_that_only_the_listener_can_run_are_reported():
    naming = Naming.from_properties(
        {
            f"{CONF}.extraTrimmers": f"org.acme.Weeks;;{TRIMMER}.DateTrimmer; org.acme.Off",
            f"{CONF}.disabledTrimmers": "org.acme.Off",
        }
    )
    assert naming.unknown_trimmers == ("org.acme.Weeks",)
    assert Naming().unknown_trimmers == ()


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        pytest.param(r"(?<remove>/v\d+)$", "/lake/t/v12", "/lake/t", id="at the end"),
        pytest.param(r"(?<remove>/tmp)", "/lake/tmp/t", "/lake/t", id="in the middle"),
        pytest.param(r"(?<remove>/tmp)", "/tmp/t/tmp", "/t/tmp", id="the first match only"),
        pytest.param(
            r"(.*)(?<remove>\/.*\/.*)", "/lake/t/a/b", "/lake/t", id="the documentation's example"
        ),
        pytest.param(r"(?<=lake)(?<remove>/x)", "/lake/x/t", "/lake/t", id="a lookbehind"),
        pytest.param(r"\(?<remove>", "/lake/t", "/lake/t", id="an escaped bracket is no group"),
        pytest.param(r"(?<other>/t)", "/lake/t", "/lake/t", id="no such group"),
        pytest.param(r"(?<remove>/v[0-9])?", "/lake/t", "/lake/t", id="group that matched nothing"),
    ],
)
def test_what_the_pattern_of_the_user_matches_is_removed(pattern, name, expected):
    naming = Naming.from_properties({f"{CONF}.removePath.pattern": pattern})
    assert naming.without_removed(name) == expected
    assert naming.unusable_pattern == ""


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("(?<remove>/x", id="not closed"),
        pytest.param(r"(?<remove>/\p{Lu}+)", id="Unicode class"),
        pytest.param(r"(?<remove>/[a-z&&[^x]]+)", id="intersection"),
        pytest.param(r"(?<remove>/[a[0-9]]+)", id="union"),
        pytest.param(r"(?<remove>\Q/x\E)", id="quoted"),
    ],
)
def test_a_pattern_that_python_cannot_match_is_reported_and_removes_nothing(pattern):
    naming = Naming.from_properties({f"{CONF}.removePath.pattern": pattern})
    assert naming.unusable_pattern == pattern
    assert naming.without_removed("/lake/x") == "/lake/x"


def test_the_default_configuration_names_as_the_listener_without_one():
    assert Naming.from_properties({}) == Naming()
    assert (
        len(
            {
                Naming(),
                Naming.from_properties({}),
                Naming.from_properties({f"{CONF}.removePath.pattern": "x"}),
            }
        )
        == 2
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/t/part-00000-5a4c.c000.snappy.parquet", True),
        ("/t/part-00000", True),
        ("orders.csv", True),
        ("/t/orders.csv/dt=1", False),
        ("/t/v1.2", False),
        ("/t/orders", False),
        ("", False),
    ],
)
def test_files_have_an_extension_or_sparks_own_names(path, expected):
    assert looks_like_file(path) is expected


@pytest.mark.parametrize("uri", ["hdfs://[::1/x/dt=1", "s3://b]/x", "s3://b[12]/t"])
def test_a_uri_with_stray_brackets_in_its_host_names_no_dataset(uri):
    assert untrimmed(uri) is None


def test_an_untrimmed_name_is_the_path_itself():
    assert untrimmed("s3a://b//t/dt=a%2Fb/") == DatasetName("s3://b", "t/dt=a%2Fb")
    assert untrimmed("file:///t/dt=a%2Fb") == DatasetName("file", "/t/dt=a%2Fb")
    assert untrimmed("t/dt=1") is None


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [
        ("h2:/lake/people;MODE=PostgreSQL", "h2:/lake/people"),
        ("h2:file:/lake/people;A=1;B=2", "h2:/lake/people"),
        ("mysql://host:3306?useSSL=false", "mysql://host:3306"),
        ("postgres://host:5432", "postgres://host:5432"),
        ("file:/scratch/metastore_db", "file:/scratch/metastore_db"),
        ("s3://bucket?x", "s3://bucket?x"),
        ("file", "file"),
    ],
)
def test_a_table_has_one_name_for_all_forms_of_its_url(namespace, expected):
    assert canonical(DatasetName(namespace, "t")) == DatasetName(expected, "t")


@pytest.mark.parametrize(
    ("namespace", "kind"),
    [
        ("file", (True, False)),
        ("s3://bucket", (True, False)),
        ("file:/scratch/metastore_db", (False, True)),
        ("oracle://host:1521", (False, True)),
        ("kafka://host:9092", (False, False)),
        ("bigquery", (False, False)),
    ],
)
def test_files_and_databases_are_recognised_by_their_namespace(namespace, kind):
    name = DatasetName(namespace, "t")
    assert (is_files(name), is_database(name)) == kind
