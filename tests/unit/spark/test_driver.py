"""The half that ships to the driver: old syntax, nothing of ours imported, the same bytes."""

import ast
import errno
import io
import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from types import SimpleNamespace
from unittest.mock import Mock

import jsonschema
import pytest

from airflow_provider_sparklineage.spark.submit import submitted_files

SCHEMA = submitted_files.DRIVER.parents[1] / "event" / "schemas" / "observation.json"
MODULES = [submitted_files.DRIVER / "sitecustomize.py"]
MODULES += sorted((submitted_files.DRIVER / "sparklineage_observer").glob("*.py"))


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
    first = submitted_files.observer_zip()
    assert first == submitted_files.observer_zip()
    names = zipfile.ZipFile(io.BytesIO(first)).namelist()
    files = [m.relative_to(submitted_files.DRIVER).as_posix() for m in MODULES]
    assert names == [*files, "sparklineage_observer/digest.py"]


def test_the_zip_knows_its_digest_which_changes_with_each_file(monkeypatch, tmp_path):
    def digest():
        content = zipfile.ZipFile(io.BytesIO(submitted_files.observer_zip()))
        return content.read("sparklineage_observer/digest.py").decode()

    before = submitted_files.observer_digest()
    assert digest() == f'DIGEST = "{before}"\n'
    shutil.copytree(submitted_files.DRIVER, tmp_path / "driver")
    monkeypatch.setattr(submitted_files, "DRIVER", tmp_path / "driver")
    assert submitted_files.observer_digest() == before
    with (tmp_path / "driver" / "sparklineage_observer" / "scans.py").open("a") as file:
        file.write("# changed\n")
    assert submitted_files.observer_digest() != before
    assert submitted_files.observer_digest() in digest()


PATH_WARNING = """
import os, sys, warnings
from types import ModuleType, SimpleNamespace
from sparklineage_observer import attaching

class SparkContext:
    _jvm = SimpleNamespace(_gateway_client=None)
    @classmethod
    def _ensure_initialized(cls):
        pass
    def __init__(self):
        self._ensure_initialized()
        for path in sys.argv[1:]:
            text = "Failed to add file [%s] specified in 'spark.submit.pyFiles' to Python path"
            warnings.warn(text % path + ":\\n  /a", RuntimeWarning)

attaching._wrap_jvm(SparkContext)
SparkContext()
print("the job goes on")
"""


def test_pyspark_s_warning_about_our_zip_ends_no_job_and_that_about_others_stays():
    def job(*paths):
        command = [sys.executable, "-W", "error", "-c", PATH_WARNING, *paths]
        env = {**os.environ, "PYTHONPATH": str(submitted_files.DRIVER)}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    ours = "file:///tmp/sparklineage-0/shop.revenue-try1-abc/sparklineage_observer.zip"
    assert job(ours).stdout == "the job goes on\n"
    assert job(ours).stderr == ""
    assert "Failed to add file [/opt/shop.zip]" in job(ours, "/opt/shop.zip").stderr


def test_the_zip_is_replaced_and_private(tmp_path):
    submitted_files.write_observer(tmp_path)
    path = submitted_files.write_observer(tmp_path)
    assert path.read_bytes() == submitted_files.observer_zip()
    assert oct(path.stat().st_mode & 0o777) == "0o600"


@pytest.fixture
def observer(monkeypatch):
    """Give the observer's package as the driver has it, and forget it afterwards."""
    monkeypatch.syspath_prepend(str(submitted_files.DRIVER))
    before = _forgotten()  # what tasks that are drivers have imported of it
    import sparklineage_observer

    yield sparklineage_observer
    _forgotten()
    sys.modules.update(before)


def _forgotten():
    names = [name for name in sys.modules if name.split(".")[0] == "sparklineage_observer"]
    return {name: sys.modules.pop(name) for name in names}


def test_a_file_that_reaches_its_limit_ends_with_a_line_that_reports_it(observer, tmp_path):
    from sparklineage_observer.records import Limits, Records

    file = tmp_path / "observations.ndjson"
    records = Records(str(file), Limits("total_bytes=40"))
    for _ in range(5):
        records.write({"kind": "query"})
    lines = file.read_text().splitlines()
    assert lines[:2] == ['{"kind":"query"}', '{"kind":"query"}']
    assert lines[2:] == ['{"kind":"cut","cut":["observations exceed 40 bytes"]}']
    assert oct(file.stat().st_mode & 0o777) == "0o600"


def test_a_pipe_in_the_place_of_the_file_does_not_hold_the_job(observer, tmp_path):
    from sparklineage_observer.records import Limits, Records

    file = tmp_path / "observations.ndjson"
    os.mkfifo(file)
    records = Records(str(file), Limits(""))
    writing = threading.Thread(target=records.write, args=({"kind": "query"},), daemon=True)
    writing.start()
    writing.join(5)
    assert not writing.is_alive()
    file.unlink()
    records.write({"kind": "query"})
    assert "1 record(s) could not be written" in file.read_text()


def test_a_full_disk_costs_the_records_that_did_not_fit_and_is_reported_by_the_next(
    observer, tmp_path, monkeypatch
):
    from sparklineage_observer.records import Limits, Records

    file = tmp_path / "observations.ndjson"
    records = Records(str(file), Limits())
    left = [40]  # bytes on the disk

    def write(handle, line, write=os.write):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(handle, line[: left[0]])
        left[0] -= written
        return written

    monkeypatch.setattr(os, "write", write)
    for n in range(4):
        records.write({"kind": "query", "query": n})
    left[0] = 1000
    records.write({"kind": "end"})
    whole, torn, lost, end = file.read_text().splitlines()
    assert json.loads(whole) == {"kind": "query", "query": 0}
    assert torn == '{"kind":"quer'
    error = json.loads(lost)["error"]
    assert error.startswith("3 record(s) could not be written: OSError: [Errno 28] No space")
    assert json.loads(end) == {"kind": "end"}


def test_a_child_that_the_job_has_forked_does_not_end_the_observation(observer, monkeypatch):
    """It has its parent's connection to the JVM."""
    from sparklineage_observer import attaching

    ended = []
    watching = SimpleNamespace(finish=ended.append)
    monkeypatch.setattr(attaching.attached, "observer", watching)
    pid = os.fork()
    if pid == 0:
        attaching._at_exit()
        os._exit(len(ended))
    assert os.waitpid(pid, 0)[1] == 0
    attaching._at_exit()
    assert len(ended) == 1


def test_the_observers_exit_handler_is_the_first_to_be_registered_and_so_the_last_to_run(
    observer, monkeypatch
):
    from sparklineage_observer import attaching

    registered = []
    monkeypatch.setattr(attaching.atexit, "register", registered.append)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.delitem(sys.modules, "pyspark.sql.session", raising=False)
    observer.install()
    assert registered == [attaching._at_exit]
    attaching._at_exit()  # of a process without a context, it does nothing


def test_a_job_without_a_session_is_observed_from_its_context_on(observer, tmp_path, monkeypatch):
    from unittest.mock import MagicMock

    from sparklineage_observer import attaching

    monkeypatch.setattr(attaching, "_wrap_streams", lambda _: None)
    monkeypatch.setattr(attaching, "_wrap_saves", lambda _: None)
    file = tmp_path / "observations.ndjson"
    context = MagicMock()
    context._jsc.getConf.return_value.get = {"spark.sparklineage.observations": str(file)}.get
    java = context._jsc.sc.return_value
    java.applicationId.return_value, java.version.return_value = "app", "4.0"
    watching = attaching.observe(context)
    assert attaching.observe(context) is watching
    [start] = map(json.loads, file.read_text().splitlines())
    assert (start["kind"], start["application_id"]) == ("start", "app")
    assert attaching.attached.delivery is None


@pytest.mark.parametrize(
    ("record", "times"),
    [
        pytest.param({"writes": [{}]}, 1, id="a write"),
        pytest.param({"writes": [], "command": {}}, 0, id="no command"),
        pytest.param({"writes": [], "command": {"node": "x"}}, 1, id="a command"),
        pytest.param({"writes": [], "reads": [{}]}, 0, id="a read"),
        pytest.param(None, 0, id="nothing"),
    ],
)
def test_a_query_that_has_written_is_delivered_soon(observer, tmp_path, record, times):
    from sparklineage_observer.observer import Observer

    watching = Observer(str(tmp_path / "observations.ndjson"), "tag")
    delivered = []
    watching.after_write = lambda: delivered.append((tmp_path / "observations.ndjson").exists())
    watching.observe("query", lambda: [] if record is None else [record])
    assert delivered == [True] * times


def context_of(attaching, calls):
    class SparkContext:
        _jvm = None

        @classmethod
        def _ensure_initialized(cls, *args, **kwargs):
            calls.append((args, kwargs))
            cls._jvm = SimpleNamespace(_gateway_client="the client")

    attaching._import_observer = lambda _client: None
    attaching._wrap_jvm(SparkContext)
    return SparkContext


def test_the_log_is_quieted_once_and_as_soon_as_there_is_a_jvm(observer, monkeypatch):
    from sparklineage_observer import attaching

    calls = []
    monkeypatch.setattr(attaching, "drop_warning", calls.append)
    context = context_of(attaching, calls)
    context._ensure_initialized("me", conf="c")
    context._ensure_initialized()
    assert calls == [(("me",), {"conf": "c"}), "the client", ((), {})]


def test_a_log_that_cannot_be_quieted_fails_no_job(observer, monkeypatch):
    from sparklineage_observer import attaching

    def no_log4j(_client):
        raise ValueError

    calls = []
    monkeypatch.setattr(attaching, "drop_warning", no_log4j)
    context_of(attaching, calls)._ensure_initialized()
    assert calls == [((), {})]


def test_the_observer_is_imported_while_spark_makes_the_context(observer):
    from sparklineage_observer import attaching

    attaching._import_observer("the client")
    for thread in threading.enumerate():
        if thread.name == "sparklineage-import":
            thread.join()
    assert "sparklineage_observer.observer" in sys.modules


def test_a_job_that_delivers_nothing_does_not_import_the_delivery(observer, monkeypatch):
    from sparklineage_observer import attaching

    java = SimpleNamespace(JavaClass=lambda *_: SimpleNamespace(getProperty={}.get))
    monkeypatch.setitem(sys.modules, "py4j.java_gateway", java)
    attaching._prepare_delivery("the client")
    assert "sparklineage_observer.delivery" not in sys.modules


def test_java_sends_us_segments_that_are_smaller_than_its_writes(observer):
    """Or each answer of more than 8 KB waits for an acknowledgement that we delay."""
    from sparklineage_observer import attaching

    with socket.create_server(("127.0.0.1", 0)) as server:
        attaching._answer_at_once(server)
        with socket.create_connection(server.getsockname()) as java:
            assert java.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) < 8192


def test_where_the_size_of_segments_cannot_be_set_nothing_happens(observer):
    from sparklineage_observer import attaching

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        with pytest.raises(OSError, match="not"):
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
        attaching._answer_at_once(server)


def test_what_went_wrong_is_described_in_a_few_words(observer):
    from sparklineage_observer.records import MAX_MESSAGE, message_of

    assert message_of("query", ValueError("no")) == "query: ValueError: no"
    for plan in ("Project [a] " * 1_000_000, "x" * 12_000_000):
        message = message_of("query", ValueError(plan))
        assert len(message) <= MAX_MESSAGE
        assert message.endswith("…")


def test_a_failure_of_the_observer_is_recorded_in_a_few_words(observer, tmp_path):
    from sparklineage_observer.observer import Observer

    file = tmp_path / "observations.ndjson"
    Observer(str(file), "tag").failed("query", ValueError("x" * 12_000_000))
    assert file.stat().st_size < 1000


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
def test_the_mode_of_a_delta_commit_claims_no_more_than_the_log_has(
    observer, version, info, expected
):
    from sparklineage_observer.delta import _write

    assert _write("/t", version, *info)["mode"] == expected


@pytest.mark.parametrize("operation", ["REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE"])
def test_a_delta_table_that_is_replaced_has_nothing_left_of_before(observer, operation):
    from sparklineage_observer.delta import _write

    info = {"operation": operation, "operationParameters": {}, "timestamp": 1}
    assert _write("/t", 2, info, [delta_file("1")])["mode"] == "whole"


def test_a_delta_commit_that_changes_no_data_is_no_write(observer):
    from sparklineage_observer.delta import _write

    files = [delta_file("1", change=False), delta_file("1", change=False, key="remove")]
    assert _write("/t", 3, *delta_actions("", *files)) is None


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


def delta_write(*columns):
    dimensions = [{"field": c, "transform": "identity", "type": ""} for c in columns]
    layout = {"base": "/t", "dimensions": dimensions, "partitions": [["x"]]}
    return {"how": "exact", "layouts": [layout], "removed": []}


def delta_schema(name, physical=None):
    field = {"name": name, "type": "string", "metadata": {}}
    if physical:
        field["metadata"]["delta.columnMapping.physicalName"] = physical
    return [{"metaData": {"schemaString": json.dumps({"fields": [field]})}}]


def test_a_column_of_a_mapped_delta_table_has_the_name_that_it_has_now(observer):
    from sparklineage_observer.delta import _Schema

    physical = "col-01234567-89ab-cdef-0123-456789abcdef"
    schema, write = _Schema(), delta_write(physical)
    assert schema.misses(write)
    schema.learn(delta_schema("renamed", physical))
    schema.learn(delta_schema("dt", physical))  # older
    schema.describe(write)
    assert write["layouts"][0]["dimensions"] == [
        {"field": "renamed", "transform": "identity", "type": "string"}
    ]


def test_a_column_whose_name_is_in_no_commit_makes_a_write_unknown(observer):
    from sparklineage_observer.delta import _Schema

    write = delta_write("col-01234567-89ab-cdef-0123-456789abcdef")
    _Schema().describe(write)
    assert (write["how"], write["layouts"]) == ("unknown", [])
    assert "cut" in write


def delta_table(*columns):
    """Write the log of a table partitioned by columns, whose physical names are the same."""
    fields = [{"name": c, "type": "string", "metadata": {}} for c in columns]
    schema = json.dumps({"fields": fields})
    return [{"metaData": {"schemaString": schema, "partitionColumns": [*columns]}}]


def delta_removal(observer, schema, *files, others=()):
    """Give what is known of a commit that removed files: (path, values)."""
    from sparklineage_observer.delta import _write

    removed = [{"path": p, "partitionValues": v, "dataChange": True} for p, v in files]
    actions = [*others, *({"remove": file} for file in removed)]
    write = _write("/t", 3, {"operation": "DELETE"}, actions)
    schema.expect(write, actions)
    return write


def removed_partitions(write):
    return [
        ([d["field"] for d in layout["dimensions"]], layout["partitions"])
        for layout in write["removed"]
    ]


def test_nulls_that_a_removal_leaves_out_are_known_from_the_tables_columns(observer):
    from sparklineage_observer.delta import _Schema

    schema = _Schema()
    files = [("ab/f", {}), ("cd/f", {"region": "eu"}), ("ef/f", {"dt": "x", "region": "eu"})]
    write = delta_removal(observer, schema, *files)
    assert schema.misses(write)
    schema.learn([{"commitInfo": {}}])
    assert schema.misses(write)
    schema.learn(delta_table("dt", "region"))
    assert not schema.misses(write)
    schema.learn(delta_table("older"))
    schema.describe(write)
    partitions = [[None, None], [None, "eu"], ["x", "eu"]]
    assert removed_partitions(write) == [(["dt", "region"], partitions)]


def test_a_removal_that_repartitions_its_table_has_the_columns_of_before(observer):
    from sparklineage_observer.delta import _Schema

    schema, new = _Schema(), delta_table("day")
    schema.learn(new)
    write = delta_removal(observer, schema, ("ab/f", {}), others=new)
    schema.learn(delta_table("dt", "region"))
    assert removed_partitions(write) == [(["dt", "region"], [[None, None]])]


def test_a_removal_whose_columns_are_in_no_commit_is_unknown(observer):
    from sparklineage_observer.delta import _Schema

    schema = _Schema()
    write = delta_removal(observer, schema, ("ab/f", {"dt": "x"}))
    schema.describe(write)
    assert (write["how"], write["removed"]) == ("unknown", [])
    assert "cut" in write


@pytest.mark.parametrize(
    ("files", "others"),
    [
        ([("f", {})], ()),
        ([("dt=x/f", {"dt": "x"}), ("dt=__HIVE_DEFAULT_PARTITION__/f", {})], ()),
        ([("ab/f", {})], [{"add": {"path": "cd/f", "partitionValues": {}, "dataChange": True}}]),
    ],
    ids=["not partitioned", "named folders", "added files"],
)
def test_a_removal_with_columns_of_its_own_needs_no_older_commit(observer, files, others):
    from sparklineage_observer.delta import _Schema

    schema = _Schema()
    assert not schema.misses(delta_removal(observer, schema, *files, others=others))


def test_a_column_without_a_schema_keeps_its_name(observer):
    from sparklineage_observer.delta import _Schema

    write = delta_write("dt")
    _Schema().describe(write)
    assert write == delta_write("dt")


def test_a_file_status_may_have_semicolons_in_its_path(observer):
    from sparklineage_observer import jvm

    printed = (
        "Array(FileStatus{path=file:/lake/a=x;y; isDirectory=true; modification_time=7; z},"
        " FileStatus{path=file:/lake/a=x/f; isDirectory=false; length=3; modification_time=8})"
    )
    classes = SimpleNamespace(text_of=lambda _: printed)
    assert list(jvm.statuses(classes, [])) == [
        ("file:/lake/a=x;y", True, 0, 7),
        ("file:/lake/a=x/f", False, 3, 8),
    ]


def test_nothing_is_looked_at_once_the_file_is_full(observer, tmp_path):
    from unittest.mock import Mock

    from sparklineage_observer.observer import Observer

    file = tmp_path / "observations.ndjson"
    attached = Observer(str(file), "tag", "total_bytes=1")
    context = {
        "sc.return_value.applicationId.return_value": "app",
        "getConf.return_value.get.return_value": "",
    }
    attached.context_is(Mock(), Mock(**context))
    execution = Mock()
    attached.finished("collect", execution, 1)
    assert not execution.executedPlan.called
    assert len(file.read_text().splitlines()) == 1


@pytest.fixture
def clocks(observer, monkeypatch):
    """Give the driver's two clocks, in seconds; the second reading of one takes ``slow``."""
    from sparklineage_observer import records

    clocks = SimpleNamespace(wall=1000.0, steady=50.0, slow=0.0)

    def monotonic():
        clocks.steady += clocks.slow
        return clocks.steady

    times = SimpleNamespace(time=lambda: clocks.wall, monotonic=monotonic, thread_time=monotonic)
    monkeypatch.setattr(records, "time", times)
    return clocks


@pytest.mark.parametrize(
    ("passed", "shown", "noted"),
    [
        pytest.param([5], [5], [0], id="right"),
        pytest.param([5, 5], [-2, 5], [7000, 0], id="put back"),
        pytest.param([5, 5], [-2, -2], [7000, 7000], id="put back twice"),
        pytest.param([5, 5], [3605, 5], [0, 0], id="put forward"),
        pytest.param([5, 5], [3605, -3595], [0, 3600000], id="put forward, and back again"),
        pytest.param([5, 5, 5], [4.6, 4.5, 4.6], [0, 0, 1300], id="in small steps"),
        pytest.param([5, 5], [4.6, 5.4], [0, 0], id="a little"),
    ],
)
def test_a_clock_that_is_put_back_is_noticed(clocks, passed, shown, noted):
    from sparklineage_observer.records import Clock

    clock, found = Clock(), []
    for steady, wall in zip(passed, shown, strict=True):
        clocks.steady += steady
        clocks.wall += wall
        found.append(clock.look())
    assert found == noted
    assert clock.put_back == sum(noted)


class Machine:
    """The clock, and the CPU time of a thread of Python and of those of the JVM.

    :ivar share: the part of the time by the clock in which Python's thread runs; the JVM's the same
    """

    def __init__(self, share=1.0):
        self.share = share
        self.now = self.own = 1000.0
        self.java = 3.0
        self.questions = 0

    def passes(self, seconds, share=None):
        self.now += seconds
        self.own += seconds * (self.share if share is None else share) / 2
        self.java += seconds * (self.share if share is None else share) / 2

    def answers(self):
        self.questions += 1
        return self.java


@pytest.fixture
def machine(observer, monkeypatch):
    from sparklineage_observer import observer as looks
    from sparklineage_observer import records

    machine = Machine()
    times = SimpleNamespace(
        time=lambda: machine.now,
        monotonic=lambda: machine.now,
        thread_time=lambda: machine.own,
    )
    monkeypatch.setattr(records, "time", times)
    monkeypatch.setattr(looks, "time", times)
    return machine


def budget_of(machine, limits="", **how):
    from sparklineage_observer.records import Budget, Limits

    return Budget(Limits(limits), machine.answers, **{"began": machine.now - 100, **how})


def seconds_until_over(machine, budget, step=0.5):
    """Let time pass until the budget is over; give the seconds by the clock, and the reason."""
    begun = machine.now
    while True:
        try:
            budget.check()
        except Exception as error:
            return machine.now - begun, str(error)
        assert machine.now - begun < 3600, "it is never over"
        machine.passes(step)


@pytest.mark.parametrize("is_measured", [False, True])
@pytest.mark.parametrize(
    ("share", "age", "seconds", "reason"),
    [
        pytest.param(1.0, 0, 10, "longer than 10 s", id="it works"),
        pytest.param(0.5, 0, 20, "longer than 10 s", id="it works half of the time"),
        pytest.param(0.06, 0, 33, "longer than 33 s on a busy machine", id="it mostly waits"),
        pytest.param(0.06, 900, 133, "longer than 133 s", id="it mostly waits, in a long job"),
    ],
)
def test_a_look_may_take_cpu_time_and_by_the_clock_the_longer_the_older_the_job_is(
    machine, share, age, seconds, reason, is_measured
):
    machine.share = share
    budget = budget_of(machine, began=machine.now - age, is_measured=is_measured)
    found, message = seconds_until_over(machine, budget)
    assert found == pytest.approx(seconds, abs=1.5)
    assert message.startswith("looking took " + reason)
    with pytest.raises(Exception, match=reason):
        budget.check()  # and of each further part of the query


def test_a_look_that_is_short_by_the_clock_asks_the_jvm_nothing(machine):
    budget = budget_of(machine)
    for _ in range(9):
        machine.passes(0.1)
        budget.check()
    assert budget.spent() == pytest.approx(0.9)
    assert machine.questions == 0


def test_a_slow_look_asks_the_jvm_once_a_second(machine):
    machine.share = 0.0
    budget = budget_of(machine)
    for _ in range(2900):
        machine.passes(0.01)
        budget.check()
    assert machine.questions <= 29


def test_of_a_jvm_that_does_not_measure_the_clock_counts(machine):
    machine.answers = None
    assert seconds_until_over(machine, budget_of(machine))[0] == pytest.approx(10, abs=1)

    def fails():
        raise ValueError

    machine.answers = fails
    assert seconds_until_over(machine, budget_of(machine))[0] == pytest.approx(10, abs=1)


def test_a_long_call_before_the_first_measurement_counts_at_most_as_what_the_thread_has_run(
    machine,
):
    budget = budget_of(machine)
    machine.passes(25, share=0.02)
    budget.check()
    assert budget.spent() < 4


def looking(machine, tmp_path, passes, limits=""):
    """Make an observer that looks at queries, each of which takes some time."""
    from sparklineage_observer.observer import Observer

    file = tmp_path / "observations.ndjson"
    attached = Observer(str(file), "tag", limits)
    attached.classes = SimpleNamespace(
        thread_times=lambda: SimpleNamespace(getCurrentThreadCpuTime=lambda: machine.java * 1e9)
    )

    def look():
        budget = attached.budget()
        machine.passes(passes)
        budget.check()
        return [{"kind": "query", "writes": [1]}]

    def lines():
        return [json.loads(line) for line in file.read_text().splitlines()]

    return lambda: attached.observe("query", look), lines


def test_a_busy_machine_does_not_use_up_the_time_for_all_looks(machine, tmp_path):
    machine.share = 0.01
    look, lines = looking(machine, tmp_path, 8)
    for _ in range(200):
        look()
    assert [line["kind"] for line in lines()] == ["query"] * 200


def test_looks_that_work_use_up_the_time_for_all(machine, tmp_path):
    look, lines = looking(machine, tmp_path, 8, "total_seconds=100")
    for _ in range(200):
        look()
    kinds = [line["kind"] for line in lines()]
    assert kinds == ["query"] * 13 + ["cut"]


def test_a_late_listener_waits_for_the_last_events_as_long_as_its_task_does():
    from airflow_provider_sparklineage.spark.in_process import LateListener

    context = Mock()
    context.isStopped.return_value = False
    LateListener(Mock(), context, None).end()
    [(wait_ms,), _] = context.listenerBus().waitUntilEmpty.call_args
    assert wait_ms > 300_000, "its own limit would lose events silently"
    assert context.removeSparkListener.called


class Bus:
    """Spark's bus of listeners, whose events take some time.

    :param needs: the CPU seconds that its thread needs for them
    """

    def __init__(self, machine, needs, error="java.util.concurrent.TimeoutException: not empty"):
        self.machine, self.error = machine, error
        self.empty_at = machine.java + needs
        self.waited = 0.0

    def waitUntilEmpty(self, wait_ms):  # noqa: N802  (Java's name)
        for _ in range(wait_ms // 100):
            if self.machine.java >= self.empty_at:
                return
            self.machine.passes(0.1)
            self.waited += 0.1
        if self.machine.java < self.empty_at:
            raise RuntimeError(self.error)

    def isStopped(self):  # noqa: N802  (Java's name)
        return False

    def listenerBus(self):  # noqa: N802  (Java's name)
        return self

    def getAllStackTraces(self):  # noqa: N802  (Java's name)
        names = ["main", "spark-listener-group-shared"]
        threads = [
            SimpleNamespace(getName=lambda name=name: name, getId=lambda n=n: n)
            for n, name in enumerate(names)
        ]
        ours = iter(threads)
        left = [len(threads)]

        def following():
            left[0] -= 1
            return next(ours)

        iterator = SimpleNamespace(hasNext=lambda: left[0] > 0, next=following)
        return SimpleNamespace(keySet=lambda: SimpleNamespace(iterator=lambda: iterator))


@pytest.mark.parametrize(
    ("share", "needs", "waited", "error"),
    [
        pytest.param(1.0, 0.0, 0, "", id="nothing is left"),
        pytest.param(1.0, 1.0, 2, "", id="something is left"),
        pytest.param(0.05, 0.5, 20, "", id="on a busy machine"),
        pytest.param(0.0, 1.0, 10, "has not called all its listeners", id="a listener hangs"),
        pytest.param(1.0, 99.0, 30, "has not called all its listeners", id="too much is left"),
        pytest.param(0.02, 5.0, 50, "within 43 s", id="longer than the age of the job allows"),
    ],
)
def test_at_exit_a_busy_machine_gets_the_time_that_its_listeners_need(
    machine, tmp_path, share, needs, waited, error
):
    from sparklineage_observer.observer import Observer

    file = tmp_path / "observations.ndjson"
    attached = Observer(str(file), "")
    machine.passes(130)
    machine.share = share
    bus = Bus(machine, needs)
    times = SimpleNamespace(getThreadCpuTime=lambda number: number * machine.java * 1e9)
    attached.classes = SimpleNamespace(thread_times=lambda: times, thread=bus)
    attached._java_context = SimpleNamespace(sc=lambda: bus)
    attached._file_writes = SimpleNamespace(gone=lambda _: [])
    attached.finish(10_000)
    errors = [json.loads(line).get("error", "") for line in file.read_text().splitlines()]
    assert bus.waited == pytest.approx(waited, abs=2)
    assert bool(error) == any("drain" in text for text in errors)
    assert error in "".join(errors)


def test_a_thread_that_is_held_up_between_two_clocks_has_not_put_one_back(clocks):
    from sparklineage_observer.records import Clock

    clock = Clock()
    clocks.slow = 3.0
    assert clock.look() == 0
    clocks.slow = 0.0
    clocks.wall += clocks.steady - 50.0
    assert clock.look() == 0


def test_it_is_recorded_that_the_clock_was_put_back(clocks, tmp_path):
    from sparklineage_observer.observer import Observer

    file = tmp_path / "observations.ndjson"
    watching = Observer(str(file), "")
    watching.observe("query", list)
    assert not file.exists()
    clocks.wall -= 7
    watching.observe("query", list)
    clocks.wall -= 2
    watching.finish(0)
    records = [json.loads(line) for line in file.read_text().splitlines()]
    noted = [record for record in records if "put_back" in record]
    assert [(r["kind"], r["put_back"]) for r in noted] == [
        ("clock", 7000),
        ("clock", 2000),
        ("end", 9000),
    ]
    validate = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate
    for record in noted:
        validate(record)


@pytest.mark.parametrize(
    ("committed", "skipped_at"),
    [
        pytest.param([], [1000], id="no commit"),
        pytest.param([1500], [], id="a commit of it"),
        pytest.param([900, 2500], [1000], id="commits before and after"),
        pytest.param([None], [], id="a commit without a time"),
    ],
)
def test_a_delta_write_that_may_have_been_skipped_was_if_it_committed_nothing(
    observer, committed, skipped_at
):
    from sparklineage_observer.delta import _skipped

    found = _skipped("file:/t", [(1000, 2000)], committed)
    assert [write["time"] for write in found] == skipped_at
    assert all(write["skipped"] for write in found)


class Node:
    """A node of a physical plan, of which a test knows the class and the children."""

    def __init__(self, kind, *children):
        self.kind, self._children = kind, children

    def productPrefix(self):  # noqa: N802  (Scala's name)
        return self.kind

    def children(self):
        return SimpleNamespace(size=lambda: len(self._children), apply=self._children.__getitem__)


@pytest.mark.parametrize(
    ("above", "is_limited"),
    [
        pytest.param(["CollectLimitExec", "ProjectExec"], True, id="limit"),
        pytest.param(["CollectTailExec"], True, id="tail"),
        pytest.param(["ProjectExec"], False, id="no limit"),
        pytest.param(["CollectLimitExec", "HashAggregateExec"], False, id="limit of groups"),
        pytest.param(["SortExec", "LocalLimitExec"], True, id="limit below a sort"),
        pytest.param(["CollectLimitExec", "SortExec"], False, id="limit of what is sorted"),
        pytest.param(["TakeOrderedAndProjectExec"], False, id="first ones of all"),
        pytest.param(
            ["GlobalLimitExec", "ShuffleExchangeExec", "LocalLimitExec"], True, id="both limits"
        ),
    ],
)
def test_a_scan_may_end_early_below_a_limit_that_nothing_gives_all_rows(
    observer, above, is_limited
):
    from sparklineage_observer.plans import _above

    leaf = plan = Node("FileSourceScanExec")
    for kind in reversed(above):
        plan = Node(kind, plan)
    assert _above(plan, id, is_limited=False) == {id(leaf): ([], is_limited)}


def test_a_query_that_has_failed_before_it_had_a_plan_is_no_failure_of_the_observer(
    observer, tmp_path
):
    from unittest.mock import Mock

    from sparklineage_observer.observer import Observer

    file = tmp_path / "observations.ndjson"
    attached = Observer(str(file), "tag")
    execution = Mock()
    execution.tracker.return_value.phases.return_value.toString.return_value = ""
    execution.executedPlan.side_effect = ValueError("[UNRESOLVED_COLUMN] nope")
    attached.finished("save", execution, 0, Mock())
    assert not file.exists()
    attached.finished("collect", execution, 0)
    assert "UNRESOLVED_COLUMN" in file.read_text()


# --- in a process that is more than a driver ------------------------------------------------------


@pytest.fixture
def pyspark_double(monkeypatch):
    """Give a PySpark with which sessions can be made."""

    class SparkContext:
        def __init__(self):
            self.made = True

        def stop(self):
            self.made = False

    class SparkSession:
        """Of theirs."""

        def __init__(self):
            self.made = True

    modules = {
        "pyspark": SimpleNamespace(SparkContext=SparkContext),
        "pyspark.sql": SimpleNamespace(),
        "pyspark.sql.session": SimpleNamespace(SparkSession=SparkSession),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return SparkContext, SparkSession


def test_nothing_of_pyspark_stays_replaced(observer, pyspark_double):
    from sparklineage_observer import in_process

    originals = [of.__init__ for of in pyspark_double]
    in_process.begin({"spark.sparklineage.observations": "/x"})
    assert [of.__init__ for of in pyspark_double] != originals
    assert all(of().made for of in pyspark_double)
    in_process.finish(0)  # of nothing that was observed
    in_process.end()
    assert [of.__init__ for of in pyspark_double] == originals


@pytest.mark.parametrize("error", [None, RuntimeError("the JVM is gone")])
def test_a_context_is_stopped_when_its_listeners_have_ended(observer, pyspark_double, error):
    """OpenLineage's listener may wait for a Spark job, which a context that stops does not run."""
    from sparklineage_observer import attaching, in_process

    context_class, _ = pyspark_double
    stop = context_class.stop
    in_process.begin({"spark.sparklineage.observations": "/x"})
    context = context_class()
    seen = []

    def drain(_):
        seen.append(context.made)
        if error:
            raise error

    attaching.attached.observer = SimpleNamespace(drain=drain)
    context.stop()
    assert (seen, context.made) == ([True], False)
    in_process.end()
    assert context_class.stop is stop


@pytest.mark.parametrize(
    ("level", "function", "stays"),
    [
        pytest.param(logging.INFO, "wait_for_commands", False, id="a call from Java"),
        pytest.param(logging.INFO, "run", False, id="the server"),
        pytest.param(logging.INFO, "close", True, id="what the job does"),
        pytest.param(logging.ERROR, "wait_for_commands", True, id="an error"),
    ],
)
def test_calls_from_java_are_not_in_the_log_of_the_task(
    observer, pyspark_double, caplog, level, function, stays
):
    from sparklineage_observer import in_process

    caplog.set_level(logging.INFO)
    log = logging.getLogger("py4j.clientserver")
    record = log.makeRecord(log.name, level, "", 1, "Received command", (), None, function)
    in_process.begin({"spark.sparklineage.observations": "/x"})
    log.handle(record)
    assert (record in caplog.records) is stays
    in_process.end()
    caplog.clear()
    log.handle(record)
    assert caplog.records == [record]


def test_what_somebody_put_over_ours_stays(observer, pyspark_double):
    from sparklineage_observer import in_process

    _, session = pyspark_double
    in_process.begin({"spark.sparklineage.observations": "/x"})
    ours = session.__init__

    def theirs(self):
        ours(self)
        self.audited = True

    session.__init__ = theirs
    in_process.end()
    assert session.__init__ is theirs
    assert session().made


def test_listeners_are_taken_away_and_one_that_cannot_be_is_no_reason_to_stop(
    observer, pyspark_double
):
    from sparklineage_observer import attaching, in_process

    removed = []

    def gone(_):
        msg = "the JVM is gone"
        raise OSError(msg)

    in_process.begin({"spark.sparklineage.observations": "/x"})
    attaching.attached.registered(gone, "first")
    attaching.attached.registered(removed.append, "second")
    in_process.end()
    assert removed == ["second"]
    in_process.end()
    assert removed == ["second"]


def test_a_driver_keeps_no_listeners_to_take_away(observer):
    from sparklineage_observer import attaching

    attaching.attached.registered(print, "a session's")  # there may be thousands
    assert attaching.attached.listeners == []


def test_each_application_has_an_observer_of_its_own(observer, pyspark_double, monkeypatch):
    from sparklineage_observer import attaching, in_process
    from sparklineage_observer import observer as observers

    made = []

    class Watching:
        def __init__(self, *given):
            made.append(given)

        def context_is(self, *_):
            return

        def finish(self, drain_ms):
            made.append(drain_ms)

    monkeypatch.setattr(observers, "Observer", Watching)
    monkeypatch.setattr(attaching, "_wrap_streams", lambda _: None)
    monkeypatch.setattr(attaching, "_wrap_saves", lambda _: None)
    context = SimpleNamespace(_jvm=None, _jsc=None)
    for name in ("first", "second"):
        settings = {f"spark.sparklineage.{key}": name for key in ("observations", "tag")}
        in_process.begin(settings)
        assert attaching.observe(context) is attaching.observe(context)
        in_process.finish(7)
        in_process.end()
    assert made == [("first", "first", ""), 7, ("second", "second", ""), 7]
