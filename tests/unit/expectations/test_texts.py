"""What in an argument is a URI or path, and what only looks like one."""

import json
import shlex
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.expectations.references import LONGEST, SCHEMES, paths_in


def found(text):
    return [one.uri for one in paths_in(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("s3://b/t", ["s3://b/t"], id="URI"),
        pytest.param("file:/lake/t", ["file:/lake/t"], id="Hadoop's one slash"),
        pytest.param("/lake/t", ["/lake/t"], id="path"),
        pytest.param("  /lake/t ", ["/lake/t"], id="blanks around"),
        pytest.param("--in=/lake/t", ["/lake/t"], id="option"),
        pytest.param("spark.lake.path=s3://b/t", ["s3://b/t"], id="property"),
        pytest.param("--conf=spark.x=s3://b/t", ["s3://b/t"], id="property of an option"),
        pytest.param("s3://b/x,s3://b/y", ["s3://b/x", "s3://b/y"], id="list"),
        pytest.param("/x, /y;/z", ["/x", "/y", "/z"], id="list with blanks and semicolons"),
        pytest.param("in=/x,out=s3://b/y", ["/x", "s3://b/y"], id="pairs"),
        pytest.param("--in /x --out /y", ["/x", "/y"], id="options in one text"),
        pytest.param("/x --out /y -n 3", ["/x", "/y"], id="a path, then options"),
        pytest.param("[/x,/y]", ["/x", "/y"], id="brackets"),
        pytest.param("['/x', '/y']", ["/x", "/y"], id="single quotes"),
        pytest.param('{"path": "s3://b/t", "n": 3}', ["s3://b/t"], id="JSON"),
        pytest.param('{"s3://b/t": ["/x"]}', ["s3://b/t", "/x"], id="JSON key"),
        pytest.param(r'{"p": "s3:\/\/b\/\u00e9\ud83d\ude00"}', ["s3://b/é😀"], id="JSON escapes"),
        pytest.param(
            json.dumps({"a": json.dumps({"b": json.dumps(["/x"])})}), ["/x"], id="JSON in JSON"
        ),
        pytest.param("SELECT * FROM delta.`s3://b/t` LIMIT 1", ["s3://b/t"], id="SQL"),
        pytest.param("/lake/my orders", ["/lake/my orders"], id="blank in an argument"),
        pytest.param("--in=/lake/my orders", ["/lake/my orders"], id="blank in an option"),
        pytest.param('{"p": "/lake/my orders"}', ["/lake/my orders"], id="blank in quotes"),
        pytest.param("/lake/orders - old", ["/lake/orders - old"], id="a dash is no option"),
        pytest.param("/lake/orders -n 3", ["/lake/orders"], id="option after a path"),
        pytest.param("read /lake/orders daily", ["/lake/orders"], id="blank in a sentence"),
        pytest.param("from s3://b/x to s3://b/y.", ["s3://b/x", "s3://b/y"], id="sentence's dot"),
        pytest.param("s3://b/x\ns3://b/y", ["s3://b/x", "s3://b/y"], id="lines"),
        pytest.param("/lake/a,b/c", ["/lake/a,b/c"], id="comma in a path"),
        pytest.param("/t/r=a;b", ["/t/r=a;b"], id="semicolon in a value"),
        pytest.param("/t/{a,/b}/x", ["/t/{a,/b}/x"], id="comma in a glob's braces"),
        pytest.param("/t/d={1,2},/u", ["/t/d={1,2}", "/u"], id="list of globs"),
        pytest.param("/t/[0-9]?*", ["/t/[0-9]?*"], id="glob"),
        pytest.param("(s3://b/x)", ["s3://b/x"], id="bracket that closes none"),
        pytest.param("{path: /x, n: 3}", ["/x"], id="YAML"),
        pytest.param("/lake/o'neil/t", ["/lake/o'neil/t"], id="apostrophe in a path"),
        pytest.param("don't read '/x'", ["/x"], id="apostrophe in a sentence"),
        pytest.param('"s3://b/x', ["s3://b/x"], id="quote that is not closed"),
        pytest.param("https://a/x?y=/z,s3://b/t", ["s3://b/t"], id="after a URL"),
        pytest.param("s3://b", ["s3://b"], id="bucket"),
        pytest.param("/lake/Zürich", ["/lake/Zürich"], id="unicode"),
    ],
)
def test_uris_and_paths_are_found(text, expected):
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("/", id="root"),
        pytest.param("//", id="two slashes"),
        pytest.param("//server/share", id="network share"),
        pytest.param("// a comment", id="comment"),
        pytest.param("/* a comment */", id="comment of SQL"),
        pytest.param("text/plain", id="media type"),
        pytest.param("1/2", id="fraction"),
        pytest.param("a / b", id="division"),
        pytest.param("*/5 * * * *", id="cron"),
        pytest.param("</a><b/>", id="XML"),
        pytest.param("2024/05/06", id="date"),
        pytest.param("2024-05-06T00:00:00+00:00", id="time"),
        pytest.param("/^a/b$/", id="regex"),
        pytest.param(r"/lake/\d+/x", id="regex's digits"),
        pytest.param("/lake/${ENV}/t", id="variable"),
        pytest.param("lake/orders", id="relative path"),
        pytest.param("./lake", id="here"),
        pytest.param("../lake", id="above"),
        pytest.param("~/lake", id="home"),
        pytest.param(r"C:\lake\t", id="Windows"),
        pytest.param("C:/lake/t", id="Windows with slashes"),
        pytest.param("https://host/lake/t", id="https"),
        pytest.param("https://host/?to=s3://b/t", id="URI in a URL"),
        pytest.param("jdbc:postgresql://host/db?x=/lake", id="JDBC"),
        pytest.param("jdbc:sqlite:/lake/x.db", id="JDBC of a file"),
        pytest.param("kafka://broker/topic", id="a scheme that is no file system"),
        pytest.param("xs3://b/t", id="the end of a scheme"),
        pytest.param("analytics.orders", id="table"),
        pytest.param("x" * 10 + "=" * 10, id="no path at all"),
        pytest.param("s3://b/" + "x" * LONGEST, id="longer than any path"),
    ],
)
def test_what_only_looks_like_a_path_is_passed_over(text):
    assert found(text) == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_that_spark_reads_as_files_is_known(scheme):
    assert found(f"--x={scheme}://a/b") == [f"{scheme}://a/b"]


SEGMENTS = st.text("abz019_.é%= ", min_size=1, max_size=6).map(lambda s: f"a{s.strip()}b")
URIS = st.builds(
    lambda root, segments: f"{root}/{'/'.join(segments)}",
    st.sampled_from(["s3://b", "hdfs://nn:8020", "file:///lake", "/lake"]),
    st.lists(SEGMENTS, max_size=3),
).map(lambda uri: uri.rstrip("/"))
NOISE = st.sampled_from(
    ["text/plain", "2024/05/06", "https://h/x", "--n", "3", "a=b", "//", "*/5", "C:/x", "./y"]
)


@given(st.lists(URIS | NOISE, max_size=6), st.data())
def test_exactly_the_uris_among_noise_are_found_in_json(items, data):
    text = json.dumps(items, ensure_ascii=data.draw(st.booleans()))
    known = [item for item in items if item.startswith(("s3:", "hdfs:", "file:", "/lake"))]
    assert found(text) == known
    for one in paths_in(text):
        assert json.loads(f'"{text[one.at[0] : one.at[-1]]}"') == one.uri


@given(st.lists(URIS | NOISE, max_size=6))
def test_exactly_the_uris_among_noise_are_found_in_a_command(items):
    known = [item for item in items if item.startswith(("s3:", "hdfs:", "file:", "/lake"))]
    text = f"spark-submit {' '.join(shlex.quote(item) for item in items)}"
    assert found(text) == known


@given(st.text("/a=,;'\"\\ {}[]s3:*.-\n", max_size=40))
def test_any_text_is_read_and_every_find_has_its_place(text):
    for one in paths_in(text):
        assert len(one.at) == len(one.uri) + 1
        assert list(one.at) == sorted(set(one.at))
        assert 0 <= one.at[0] < one.at[-1] <= len(text)


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "a.",
        "=",
        "a=",
        "/",
        "/a",
        '"',
        '\\"',
        " '",
        ",",
        ", ",
        "{",
        "s3:",
        "a://",
        "-",
        " ",
        "\"'`",
        "/a=b",
        ",aaaa",
    ],
)
@pytest.mark.parametrize("begin", ["", "s3://b/x"])
def test_reading_is_linear_in_the_length(begin, unit):
    text = begin + unit * (30_000 // len(unit))
    started = time.process_time()
    list(paths_in(text))
    # Linear takes some hundredths of a second; what is quadratic takes many seconds.
    assert time.process_time() - started < 2


def test_thousands_of_uris_are_read():
    assert len(found("s3://b/t/dt=1," * 15_000)) == 15_000
