"""A spark-submit in a command of the user's own: what the macros give it, and what is collected."""

from __future__ import annotations

import json
import logging
import shlex
import stat
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Asset

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.cli import collector
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.plugins import macros
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity
from airflow_provider_sparklineage.spark.submit.distribution import read_properties
from tests.conftest import golden
from tests.lineage_backend import receiving, send_by
from tests.openlineage_spec import validate_event
from tests.spark_submit_double import argument, task_context
from tests.unit.listener_jars import listener_jar

pytestmark = pytest.mark.airflow

TRY = TaskIdentity("shop", "revenue", "manual", 1)
ARGS = "{{ macros.sparklineage.submit_args() }}"
LISTENER = "io.openlineage.spark.agent.OpenLineageSparkListener"
READ = ["/lake/customers", "/lake/orders", "/lake/rates"]
SECRET = "pl4nted-s3cr3t"
T = "spark.openlineage.transport."
KEYED = {f"{T}type": "http", f"{T}url": "http://marquez:5000", f"{T}auth.apiKey": SECRET}


@pytest.fixture
def run_of(context):
    """Give the context of a try that runs, of a task."""

    def of(task, *, state="running", map_index=-1, **other):
        found = task_context()
        found["ti"].state, found["ti"].map_index, found["ti"].task = state, map_index, task
        macro = SimpleNamespace(**{m.__name__: m for m in macros.MACROS})
        return found | {"task": task, "macros": SimpleNamespace(sparklineage=macro)} | other

    return of


@pytest.fixture
def rendered(run_of):
    """Render a task as its worker does."""

    def render(command=f"spark-submit {ARGS} job.py", context=None, map_index=-1, **arguments):
        with DAG("shop", schedule=None):
            revenue = BashOperator(task_id="revenue", bash_command=command, **arguments)
        revenue.render_template_fields(context or run_of(revenue, map_index=map_index))
        return revenue

    return render


@pytest.fixture
def run(rendered, run_of):
    """Render and execute a task as its worker does; give it."""

    def run(command=f"spark-submit {ARGS} job.py", **arguments):
        task = rendered(command, **arguments)
        task.execute(run_of(task))
        return task

    return run


def added(task):
    """Give the properties of a file that a command names."""
    words = shlex.split(task.bash_command)
    return read_properties(Path(words[words.index("--properties-file") + 1]))


def bundle(captures):
    [manifest] = captures()
    return json.loads(manifest.read_text())


def codes(captures):
    return [d["code"] for d in bundle(captures).get("degradations", ())]


# --- what a command is given ----------------------------------------------------------------------


def test_it_is_one_file_that_only_this_user_can_read(spark_submit, rendered, captures):
    task = rendered()
    [program, flag, file, application] = shlex.split(task.bash_command)
    assert (program, flag, application) == ("spark-submit", "--properties-file", "job.py")
    [manifest] = captures()
    assert Path(file).parent == manifest.parent
    assert stat.S_IMODE(Path(file).stat().st_mode) == 0o600
    properties = added(task)
    assert properties["spark.extraListeners"] == LISTENER
    assert properties["spark.jars"] == str(spark_submit.jar)
    assert properties["spark.submit.pyFiles"] == f"{manifest.parent}/sparklineage_observer.zip"
    assert properties[f"{T}location"] == f"{manifest.parent}/events.ndjson"
    assert properties["spark.openlineage.parentJobName"] == "shop.revenue"


def test_it_has_what_the_operator_would_have_passed(spark_submit, rendered, execute):
    task = rendered()
    operator = SparkLineageSubmitOperator(task_id="revenue", application="job.py")
    execute(operator)
    given = spark_submit.given
    ours = added(task)
    flags = {"spark.jars": "--jars", "spark.submit.pyFiles": "--py-files"}
    passed = given.conf | {key: argument(given, flag) for key, flag in flags.items()}
    # Where the bundle is, and who says that the JVM be quiet.
    moved = ("pyFiles", "location", "observations", "extraJavaOptions")

    def same(properties):
        return {k: v for k, v in properties.items() if not k.endswith(moved)}

    assert same(ours) == same(passed)
    assert ours["spark.driver.extraJavaOptions"] in given.env["SPARK_SUBMIT_OPTS"]


def test_what_is_given_to_the_macro_comes_with_it(spark_submit, rendered):
    call = (
        "jars='/jars/a b.jar', py_files=['x.zip', 'y.zip'], packages='g:a:1', "
        "conf={'spark.extraListeners': 'own.Listener', 'spark.x': 1}"
    )
    task = rendered(f"spark-submit {{{{ macros.sparklineage.submit_args({call}) }}}} job.py")
    properties = added(task)
    assert properties["spark.jars"] == f"/jars/a b.jar,{spark_submit.jar}"
    assert properties["spark.submit.pyFiles"].startswith("x.zip,y.zip,/")
    assert properties["spark.jars.packages"] == "g:a:1"
    assert properties["spark.extraListeners"] == f"own.Listener,{LISTENER}"
    assert properties["spark.x"] == "1"


def test_the_file_that_it_replaces_is_in_it(spark_submit, rendered, tmp_path):
    own = tmp_path / "own.properties"
    own.write_text("spark.y=2\nspark.jars=/jars/own.jar\n")
    (spark_submit.home / "conf" / "spark-defaults.conf").write_text("spark.z 3\n")
    assert added(rendered())["spark.z"] == "3"
    call = f"macros.sparklineage.submit_args(properties_file='{own}')"
    properties = added(rendered(f"spark-submit {{{{ {call} }}}} job.py"))
    assert (properties["spark.y"], properties.get("spark.z")) == ("2", None)
    assert properties["spark.jars"] == f"/jars/own.jar,{spark_submit.jar}"


def test_no_secret_of_a_transport_is_in_the_command(spark_submit, rendered, run_of, captures):
    defaults = "".join(f"{key} {value}\n" for key, value in KEYED.items())
    (spark_submit.home / "conf" / "spark-defaults.conf").write_text(defaults)
    task = rendered()
    assert SECRET not in task.bash_command
    assert added(task)[f"{T}transports.user.auth.apiKey"] == SECRET
    call = f"macros.sparklineage.submit_args(conf={KEYED!r})"
    task = rendered(f"spark-submit {{{{ {call} }}}} job.py")
    assert SECRET not in task.bash_command
    assert added(task)[f"{T}transports.user.auth.apiKey"] == SECRET
    assert SECRET not in json.dumps(bundle(captures))


@pytest.mark.parametrize(
    "value", ["a b", "it's", "$HOME `id` $(id)", "a;b|c&d", 'say "x"', "ü\n\\", "{{ ds }}", "*"]
)
def test_a_shell_reads_each_argument_as_it_is(spark_submit, run, monkeypatch, value):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__DISABLED", "True")
    monkeypatch.setenv("VALUE", value)
    (spark_submit.home / "conf" / "x").touch()
    call = f"macros.sparklineage.submit_args(conf={{'spark.x': {value!r}}})"
    run(f"spark-submit {{{{ {call} }}}} job.py")
    assert spark_submit.given.argv == ["--conf", f"spark.x={value}", "job.py"]


def test_a_path_that_spark_would_misread_gets_a_link(
    spark_submit, run, monkeypatch, tmp_path, captures
):
    location = tmp_path / "capt üres, it's"
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(location))
    spark_submit.does("staging_chain")
    task = run()
    file = Path(shlex.split(task.bash_command)[2])
    assert str(location) not in str(file)
    [events] = location.glob("*/events.ndjson")
    assert events.stat().st_size > 0


# --- once for a try -------------------------------------------------------------------------------


def test_twice_in_a_command_is_the_same(spark_submit, rendered, captures):
    task = rendered(f"spark-submit {ARGS} a.py && spark-submit {ARGS} b.py")
    words = shlex.split(task.bash_command)
    assert words[1:3] == words[6:8]
    assert len(captures()) == 1


def test_rendered_twice_is_the_same(spark_submit, rendered, run_of, captures):
    with DAG("shop", schedule=None):
        revenue = BashOperator(task_id="revenue", bash_command=f"spark-submit {ARGS} job.py")
    context = run_of(revenue)
    texts = {rendered(context=context).bash_command for _ in range(2)}
    assert len(texts) == 1
    assert len(captures()) == 1


def test_an_execution_of_the_same_try_takes_the_place_of_one_before(
    spark_submit, rendered, captures
):
    rendered()
    [left] = captures()
    (left.parent / "events.ndjson").write_text("{}\n")
    rendered()
    [now] = captures()
    assert now == left
    assert (now.parent / "events.ndjson").read_text() == ""


def test_what_one_field_got_collides_with_no_other_field(spark_submit, rendered, captures):
    task = rendered(env={"OTHER": "{{ macros.sparklineage.submit_args(conf={'spark.x': 1}) }}"})
    assert task.env["OTHER"].startswith("--properties-file ")
    assert task.env["OTHER"] not in task.bash_command
    assert codes(captures) == []


def test_each_mapped_task_has_a_bundle(spark_submit, rendered, captures):
    for index in range(-1, 2):
        rendered(map_index=index)
    indexes = [json.loads(m.read_text())["task"].get("map_index", -1) for m in captures()]
    assert sorted(indexes) == [-1, 0, 1]


def test_what_nobody_runs_is_as_without_lineage(spark_submit, rendered, run_of, captures):
    """As `airflow tasks render` shows it, which can be run by hand."""
    task = rendered(context=run_of(SimpleNamespace(), state=None))
    assert task.bash_command == "spark-submit  job.py"
    assert captures() == []


# --- without lineage ------------------------------------------------------------------------------


def test_off_is_off(spark_submit, rendered, captures, monkeypatch, caplog):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__DISABLED", "True")
    assert rendered().bash_command == "spark-submit  job.py"
    call = "macros.sparklineage.submit_args(jars='a.jar', properties_file='p')"
    task = rendered(f"spark-submit {{{{ {call} }}}} job.py")
    assert shlex.split(task.bash_command)[1:-1] == ["--properties-file", "p", "--jars", "a.jar"]
    assert captures() == []
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_what_is_impossible_is_one_warning_and_kept_for_collecting(
    spark_submit, run, captures, monkeypatch, caplog
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", "/nowhere.jar")
    call = "macros.sparklineage.submit_args(jars='a.jar')"
    run(f"spark-submit {{{{ {call} }}}} job.py")
    assert spark_submit.given.argv == ["--jars", "a.jar", "job.py"]
    assert codes(captures) == ["listener_unavailable"]
    [warning] = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert "/nowhere.jar does not exist" in warning.getMessage()


def test_a_location_that_nobody_can_write_to_fails_no_rendering(
    spark_submit, run, monkeypatch, caplog
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", "/dev/null/captures")
    run()
    assert spark_submit.given.argv == ["job.py"]
    [warning] = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert "No capture bundle can be made" in warning.getMessage()


def test_strict_fails_before_anything_is_submitted(spark_submit, run, monkeypatch, captures):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", "/nowhere.jar")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__STRICT", "True")
    with pytest.raises(Exception, match=r"/nowhere\.jar does not exist"):
        run()
    assert not spark_submit.ran
    assert captures() == []


@pytest.mark.parametrize(
    ("own", "named"),
    [
        ("--jars own.jar", "--jars"),
        ("--py-files=own.zip", "--py-files"),
        ("--conf spark.jars=own.jar", "spark.jars"),
        ("--conf spark.extraListeners=own", "spark.extraListeners"),
        ("\\\n  --properties-file /dev/null", "--properties-file"),
    ],
)
def test_a_flag_of_the_commands_own_that_would_collide_is_left_to_it(
    spark_submit, run, captures, caplog, own, named
):
    run(f"spark-submit {ARGS} {own} job.py")
    words = shlex.split(own.replace("\\\n", ""))
    assert spark_submit.given.argv == [*words, "job.py"]
    assert codes(captures) == ["listener_unavailable"]
    assert f"The command has {named}, of which Spark takes one alone" in caplog.text
    assert "submit_args(jars='a.jar'" in caplog.text


def test_a_script_that_the_command_names_is_looked_into(spark_submit, run, captures, tmp_path):
    script = tmp_path / "run.sh"
    script.write_text('exec spark-submit --jars own.jar "$@" job.py')
    run(f"bash {script} {ARGS}")
    assert spark_submit.given.argv == ["--jars", "own.jar", "job.py"]
    assert codes(captures) == ["listener_unavailable"]
    script.write_text('exec spark-submit "$@" job.py')
    assert "spark.submit.pyFiles" in added(run(f"bash {script} {ARGS}"))


def test_flags_of_another_statement_collide_with_nothing(spark_submit, rendered, captures):
    rendered(f"spark-submit --jars a.jar first.py; spark-submit {ARGS} job.py")
    assert codes(captures) == []


def test_an_application_that_the_command_does_not_show_is_not_observed(
    spark_submit, rendered, captures
):
    task = rendered(f"spark-submit {ARGS} $JOB")
    assert codes(captures) == ["observer_unavailable"]
    assert "spark.submit.pyFiles" not in added(task)
    call = "macros.sparklineage.submit_args(application='job.py')"
    task = rendered(f"spark-submit {{{{ {call} }}}} $JOB")
    assert "spark.submit.pyFiles" in added(task)


# --- a folder for SPARK_CONF_DIR ------------------------------------------------------------------


def test_a_folder_has_the_users_files_and_our_properties(spark_submit, run, captures):
    conf = spark_submit.home / "conf"
    (conf / "spark-defaults.conf").write_text("spark.z 3\n")
    (conf / "log4j2.properties").write_text("own")
    spark_submit.does("staging_chain")
    run(
        "spark-submit job.py",
        env={"SPARK_CONF_DIR": "{{ macros.sparklineage.spark_conf_dir() }}"},
        append_env=True,
    )
    given = spark_submit.given
    assert given.argv == ["job.py"]
    [manifest] = captures()
    folder = Path(given.env["SPARK_CONF_DIR"])
    assert folder == manifest.parent / "conf"
    assert (folder / "log4j2.properties").read_text() == "own"
    properties = read_properties(folder / "spark-defaults.conf")
    assert (properties["spark.z"], properties["spark.extraListeners"]) == ("3", LISTENER)
    assert (conf / "spark-defaults.conf").read_text() == "spark.z 3\n"
    assert (manifest.parent / "events.ndjson").stat().st_size > 0


def test_without_lineage_the_folder_is_the_users(spark_submit, rendered, monkeypatch, tmp_path):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__DISABLED", "True")
    command = "SPARK_CONF_DIR={{ macros.sparklineage.spark_conf_dir() }} spark-submit job.py"
    of_spark = rendered(command).bash_command
    assert of_spark == f"SPARK_CONF_DIR={spark_submit.home}/conf spark-submit job.py"
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert f"SPARK_CONF_DIR={tmp_path} " in rendered(command).bash_command


def test_a_folder_of_the_users_that_cannot_be_read_stays_and_fails_no_rendering(
    spark_submit, run, captures, monkeypatch, caplog
):
    def unreadable(self):
        msg = f"Permission denied: {self}"
        raise PermissionError(msg)

    monkeypatch.setattr(Path, "iterdir", unreadable)
    command = "SPARK_CONF_DIR={{ macros.sparklineage.spark_conf_dir() }} spark-submit job.py"
    run(command)
    assert spark_submit.given.env["SPARK_CONF_DIR"] == f"{spark_submit.home}/conf"
    assert "Permission denied" in caplog.text
    monkeypatch.undo()
    assert codes(captures) == ["injection_failed"]


def test_strict_fails_for_a_folder_that_cannot_be_made(spark_submit, run, monkeypatch):
    def full(self, **_):
        msg = f"No space left: {self}"
        raise OSError(msg)

    make = Path.mkdir
    monkeypatch.setattr(
        Path, "mkdir", lambda self, **more: (full if self.name == "conf" else make)(self, **more)
    )
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__STRICT", "True")
    with pytest.raises(OSError, match="No space left"):
        run("SPARK_CONF_DIR={{ macros.sparklineage.spark_conf_dir() }} spark-submit job.py")
    assert not spark_submit.ran


# --- a driver in a cluster, submitted from here ---------------------------------------------------


@pytest.mark.parametrize("master", ["--master yarn", ""], ids=["in the command", "in a file"])
def test_a_driver_in_a_cluster_delivers(
    spark_submit, run, collect, backend, lake, captures, master
):
    (spark_submit.home / "conf" / "spark-defaults.conf").write_text("spark.master yarn\n")
    does_all(spark_submit, code=DELIVERS)
    task = run(f"spark-submit {ARGS} {master} --deploy-mode cluster job.py")
    [folder] = lake.iterdir()
    assert added(task)["spark.sparklineage.deliver"] == f"file://{folder}"
    assert Path(added(task)["spark.submit.pyFiles"]).is_file()  # which spark-submit uploads
    # spark-submit may not have waited, so how the task ended does not say that the driver has.
    assert collect()[:2] == (0, "1 event was sent.\n")
    assert names(backend.events[-1]["inputs"]) == READ
    assert not folder.exists()


# --- another machine, or a container --------------------------------------------------------------


@pytest.fixture
def delivers(spark_submit, monkeypatch, tmp_path):
    """Let drivers deliver to a lake that has the listener and the observer as well."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", f"file://{tmp_path}/lake")
    jar = "local:///opt/lineage/openlineage-spark_2.13-1.53.0.jar"
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", jar)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION", "4.0.1")
    return jar


ELSEWHERE = "spark-submit {{ macros.sparklineage.submit_args(elsewhere=True) }} job.py"


def test_elsewhere_everything_is_an_argument(delivers, spark_submit, rendered, run, tmp_path):
    (spark_submit.home / "conf" / "spark-defaults.conf").write_text("spark.z 3\n")
    run(ELSEWHERE)
    given = spark_submit.given
    assert argument(given, "--jars") == delivers
    [observer] = (tmp_path / "lake" / ".tools").glob("*/sparklineage_observer.zip")
    assert argument(given, "--py-files") == f"local://{observer}"
    assert argument(given, "--properties-file") is None
    [folder] = (tmp_path / "lake").glob("*-try*")
    assert given.conf["spark.sparklineage.deliver"] == f"file://{folder}"
    assert "spark.z" not in given.conf  # of the worker
    assert "spark.driver.extraJavaOptions" not in given.conf  # that place may have its own
    assert sorted(f.name for f in folder.iterdir()) == ["manifest.json", "sending.json"]


def test_elsewhere_the_listener_comes_from_the_tools_folder(
    delivers, spark_submit, run, monkeypatch, tmp_path
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", "")
    run(ELSEWHERE)
    [jar] = (tmp_path / "lake" / ".tools").glob("*/openlineage-spark*.jar")
    assert argument(spark_submit.given, "--jars") == f"local://{jar}"


def test_elsewhere_without_a_place_that_both_reach_is_refused(
    delivers, spark_submit, run, caplog, monkeypatch, tmp_path
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(tmp_path / "captures"))
    run(ELSEWHERE)
    assert spark_submit.given.argv == ["job.py"]
    assert "Set [sparklineage] capture_location to a URL" in caplog.text


def test_elsewhere_no_secret_can_be_passed_on(delivers, spark_submit, run, caplog):
    call = f"macros.sparklineage.submit_args(elsewhere=True, conf={KEYED!r})"
    run(f"spark-submit {{{{ {call} }}}} job.py")
    assert SECRET not in json.dumps(spark_submit.given.argv)
    assert "without its own OpenLineage transport" in caplog.text


# --- collected ------------------------------------------------------------------------------------


@pytest.fixture
def backend(monkeypatch):
    with receiving() as server:
        send_by(monkeypatch, type="http", url=server.url)
        yield server


@pytest.fixture
def collect(capsys, backend, monkeypatch):
    """Run the command as Airflow does, which knows the state of the try; give code and output."""
    [command] = [c for c in cli.AIRFLOW_COMMANDS if c.name == "collect"]

    def run(state="COMPLETE", run="manual", **options):
        monkeypatch.setattr(collector, "state_of", lambda _: state)
        monkeypatch.setattr(collector, "replace_xcom", lambda *_, is_first: is_first)
        given = dict.fromkeys(("dag", "task", "now", "again", "dry_run")) | options
        capsys.readouterr()
        args = SimpleNamespace(run=run, conn_id="sparklineage_default", **given)
        code = cli._guarded(command.run, args)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def does_all(spark_submit, **script):
    """Let listener and observer report a job."""
    observed = golden("staging_chain").parent / "observed" / "staging_chain.ndjson"
    spark_submit.does("staging_chain", observed=str(observed), **script)


DELIVERS = "from tests.remote_driver import deliver; deliver(conf)"


def names(datasets):
    return [dataset["name"] for dataset in datasets]


def test_what_the_command_did_is_collected_and_sent(
    spark_submit, run, collect, backend, archive, captures
):
    does_all(spark_submit)
    run(inlets=[Asset("file:///lake/declared")])
    assert backend.events == []
    assert collect()[:2] == (0, "1 event was sent.\n")
    start, end = backend.events
    assert [start["eventType"], end["eventType"]] == ["START", "COMPLETE"]
    assert end["job"]["name"] == "shop.revenue"
    assert names(end["inputs"]) == sorted([*READ, "/lake/declared"])
    assert names(end["outputs"]) == ["/lake/revenue", "/lake/staging/enriched_orders"]
    assert end["run"]["facets"]["sparkLineage_capture"].get("degradations", []) == []
    for event in backend.events:
        validate_event(event)
    assert captures() == []


def test_what_was_merged_is_what_the_operator_reports(spark_submit, run, collect, execute, archive):
    does_all(spark_submit)
    run()
    collect()
    of_command = archive.read(TRY)
    operator = SparkLineageSubmitOperator(task_id="revenue", application="job.py")
    execute(operator)
    of_operator = archive.read(TRY)
    assert of_command["inputs"] == of_operator["inputs"]
    assert of_command["outputs"] == of_operator["outputs"]
    assert of_command["run"]["runId"] == of_operator["run"]["runId"]


@pytest.mark.parametrize(
    ("cut", "state", "expected"),
    [
        pytest.param(None, "FAIL", "FAIL", id="the task failed after its job"),
        pytest.param(-1, "FAIL", "FAIL", id="the driver was killed"),
        pytest.param(None, "", "COMPLETE", id="Airflow is not asked, the job ended"),
        pytest.param(-1, "", None, id="Airflow is not asked, the job reported no end"),
        pytest.param(None, "RUNNING", None, id="the task goes on"),
    ],
)
def test_how_it_ended_is_what_airflow_knows(
    spark_submit, run, collect, backend, captures, cut, state, expected
):
    spark_submit.does("staging_chain")
    run()
    if cut is not None:
        [manifest] = captures()
        events = manifest.with_name("events.ndjson")
        events.write_text("".join(events.read_text().splitlines(keepends=True)[:cut]))
    code, out, err = collect(state)
    assert [e["eventType"] for e in backend.events][1:] == [expected] * (expected is not None)
    assert code == (0 if expected else 1), (out, err)
    if expected is None:
        assert "is still running as far as is known" in err
        assert len(captures()) == 1


def test_without_a_run_every_command_is_collected_once(
    spark_submit, rendered, execute, collect, backend, captures, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    does_all(spark_submit)
    execute(SparkLineageSubmitOperator(task_id="revenue", application="job.py"))
    for index in range(3):
        rendered(map_index=index)
    assert len(captures()) == 4
    assert collect(run="")[:2] == (0, "3 events were sent.\n")
    kept = len(backend.events)
    assert collect(run="")[:2] == (0, "There is nothing to collect.\n")
    assert len(backend.events) == kept == 6


def test_why_there_is_no_lineage_is_collected_as_well(
    spark_submit, run, collect, backend, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", "/nowhere.jar")
    run()
    assert collect()[0] == 0
    facet = backend.events[-1]["run"]["facets"]["sparkLineage_capture"]
    assert [d["code"] for d in facet["degradations"]] == ["listener_unavailable"]


def test_a_jar_of_another_spark_is_refused(spark_submit, run, captures, monkeypatch, tmp_path):
    jar = listener_jar(tmp_path / "openlineage-spark_2.12-1.53.0.jar", "2.12")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", str(jar))
    run()
    assert spark_submit.given.argv == ["job.py"]
    assert codes(captures) == ["listener_unavailable"]
