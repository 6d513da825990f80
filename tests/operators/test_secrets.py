"""Secrets planted wherever a user has them: none reaches an output of ours.

Each is a text of its own, so that a failure names the place that it is from and where it came out.
What the stock operator shows too (a user's own arguments among those of spark-submit) is the user's
choice: nothing more may be there. What Airflow masks in a task's log is masked before it is looked
at, as Airflow does.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import logging
import os
import re
import tempfile
import traceback
import zipfile
from pathlib import Path
from unittest import mock

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, Asset
from airflow.sdk.execution_time.context import ConnectionAccessor, VariableAccessor
from airflow.sdk.log import redact
from openlineage.client.event_v2 import Dataset
from openlineage.client.serde import Serde

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.expectations import DatasetSubset
from airflow_provider_sparklineage.hooks.sparklineage import SparkLineageHook
from airflow_provider_sparklineage.operators.adoption.adopting import has_lineage
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from tests.conftest import golden
from tests.loopback import Handler, serving

pytestmark = pytest.mark.airflow

OL = "spark.openlineage.transport."
OURS = "airflow_provider_sparklineage"


class Planted:
    """Makes the secret of a place, and finds those that come out."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}

    def __call__(self, place: str) -> str:
        secret = "Zq" + re.sub("[^a-z]", "", place.lower()) + "7x"
        assert self._places.setdefault(secret, place) == place
        return secret

    def found(self, text: str) -> set[str]:
        return {place for secret, place in self._places.items() if secret in text}

    def leaks(self, exits: dict[str, str]) -> set[tuple[str, str]]:
        return {(place, exit_) for exit_, text in exits.items() for place in self.found(text)}


def table(leaks) -> str:
    """Write what came out, a line each."""
    return "\n" + "\n".join(f"{place:45} → {exit_}" for place, exit_ in sorted(leaks))


@pytest.fixture
def planted():
    return Planted()


@pytest.fixture(autouse=True)
def masker():
    """Let Airflow's masker be that of a task, and forget what the test registers."""
    from airflow.sdk._shared.secrets_masker import DEFAULT_SENSITIVE_FIELDS, _secrets_masker

    found = _secrets_masker()
    before = copy.copy(found.__dict__)
    found.patterns = set(found.patterns)
    found.sensitive_variables_fields = [*DEFAULT_SENSITIVE_FIELDS]
    yield found
    found.__dict__.clear()
    found.__dict__.update(before)


class _Backend(Handler):
    """Echoes what it is sent in a refusal, and notes what others can see of the sender."""

    def get(self):
        self.answer(self.server.status, f"refused: {self.headers}", Content_Type="text/plain")

    def post(self):
        self.server.bodies.append(self.body().decode())
        self.server.processes |= set(_command_lines())
        self.get()


def _command_lines():
    """Give those of this process's children: other processes of the machine are other tests'."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"PPid:\t{os.getpid()}\n" in (folder / "status").read_text():
                yield (folder / "cmdline").read_text(errors="replace").replace("\0", " ")


@pytest.fixture
def backend():
    with serving(_Backend, bodies=[], processes=set(), status=422) as running:
        yield running


# --- places ---------------------------------------------------------------------------------------


@pytest.fixture
def environment(spark_submit, planted, backend, masker, monkeypatch, tmp_path):
    """Plant in connections, variables, configuration and files."""
    p = planted

    def connection(conn_id, **fields):
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(fields))

    connection(
        "spark_default",
        conn_type="spark",
        host=f"spark://me:{p('Spark connection, host')}@master",
        port=7077,
        password=p("Spark connection, password"),
        extra={"token": p("Spark connection, extra"), "queue": "q"},
    )
    connection(
        "sparklineage_default",
        conn_type="sparklineage",
        host="127.0.0.1",
        port=backend.server_port,
        password=p("lineage connection, API key"),
        extra={
            "web_url": f"http://me:{p('lineage connection, web_url')}@marquez:3000",
            "listener_extensions": [f"https://me:{p('lineage connection, option')}@h/x.jar"],
            "transport": {
                "type": "http",
                "url": f"{backend.url}/?api_token={p('lineage connection, transport URL')}",
                "auth": {"type": "api_key", "apiKey": p("lineage connection, transport key")},
            },
        },
    )
    connection("warehouse", conn_type="postgres", password=p("another connection"))
    monkeypatch.setenv("AIRFLOW_VAR_API_TOKEN", p("a variable"))
    masker.add_mask(p("event, a masked value"))
    monkeypatch.setenv(
        "AIRFLOW__OPENLINEAGE__TRANSPORT",
        json.dumps(
            {
                "type": "http",
                "url": f"{backend.url}/?token={p('OpenLineage transport, URL')}",
                "auth": {"type": "api_key", "apiKey": p("OpenLineage transport, key")},
                "custom_headers": {"X-Tenant": p("OpenLineage transport, header")},
                "retry": {"total": 0},
            }
        ),
    )
    monkeypatch.setenv(
        "AIRFLOW__SPARKLINEAGE__ARCHIVE_URL",
        # A store that no provider is installed for: the libraries of one log what they send.
        f"gs://AKIA:{p('archive_url, key')}@bucket/x?token={p('archive_url, query')}",
    )
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    defaults = spark_submit.home / "conf" / "spark-defaults.conf"
    defaults.write_text(
        f"{OL}type http\n{OL}url http://marquez:5000\n"
        f"{OL}auth.apiKey {p('spark-defaults.conf, transport')}\n"
        f"spark.hadoop.fs.s3a.secret.key {p('spark-defaults.conf, store')}\n"
        f"spark.jars https://me:{p('spark-defaults.conf, jars')}@h/a.jar\n"
    )
    script = {"events": str(_events(p, tmp_path)), "recorded_as": _application(), "bytes": None}
    spark_submit.script.write_text(json.dumps({**script, "observations": _observations(p)}))
    return spark_submit


def _application():
    return json.loads(golden("staging_chain").read_text().splitlines()[0])["run"]["runId"]


def _events(p, tmp_path):
    """Write what the listener reports of a job whose code, data and errors have secrets in them."""
    url = f"jdbc:postgresql://me:{p('event, dataset namespace')}@h/db"
    dataset = {
        "namespace": url,
        "name": f"https://h/orders?sig={p('event, dataset name')}",
        "facets": {
            "dataSource": {"name": url, "uri": f"{url}?password={p('event, data source')}"},
            "schema": {"fields": [{"name": "id", "type": "int"}]},
        },
    }
    lines = []
    for line in golden("staging_chain").read_text().splitlines():
        event = json.loads(line)
        run, job = event["run"]["facets"], event["job"].setdefault("facets", {})
        run["spark.exception"] = {"message": f"java.io.IOException: {p('event, exception')}"}
        run["errorMessage"] = {
            "message": f"SQLException: {url}?password={p('event, error message')}",
            "stackTrace": f"Caused by: https://me:{p('event, stack trace')}@h/x",
        }
        run["spark_properties"]["properties"] = {
            "spark.hadoop.fs.s3a.secret.key": p("event, Spark property"),
            "spark.openlineage.transport.auth.apiKey": p("event, transport property"),
        }
        query = f"CREATE TABLE t OPTIONS (password '{p('event, SQL')}')"
        job["sql"] = {"query": query}
        for input_ in event.get("inputs", ())[:1]:
            subset = input_.get("inputFacets", {}).get("subset")
            if subset:
                subset["inputCondition"]["locations"] = [
                    f"s3a://AKIA:{p('event, location')}@lake/orders/dt=2024-05-06"
                ]
        for output in event.get("outputs", ()):
            for field in output["facets"]["columnLineage"]["fields"].values():
                for source in field["inputFields"]:
                    for t in source["transformations"]:
                        token, masked = p("event, column description"), p("event, a masked value")
                        t["description"] = f"from_url('https://me:{token}@h') || {masked}"
        if event.get("outputs"):
            event["inputs"].append(dataset)
        lines.append(json.dumps(event))
    path = tmp_path / "reported.ndjson"
    path.write_text("\n".join(lines) + "\n")
    return path


def _observations(p):
    return [
        {"kind": "start", "version": 1, "application_id": "local-1", "spark_version": "4.0.5"},
        {"error": f"query: OSError: https://me:{p('observer, error')}@h/x is away"},
        {
            "kind": "query",
            "version": 1,
            "query": 1,
            "function": "command",
            "started": 1,
            "ended": 2,
            "reads": [
                {
                    "node": "FileSourceScanExec",
                    "format": "Parquet",
                    "index": "InMemoryFileIndex",
                    "table": None,
                    "roots": ["file:/lake/orders"],
                    "partition_filters": [],
                    "data_filters": [f"(api_token = '{p('observer, filter')}')"],
                    "numFiles": 1,
                    "selected": 1,
                }
            ],
            "writes": [],
            "errors": [f"reads: see s3a://AKIA:{p('observer, error of a query')}@lake/x"],
        },
    ]


def arguments(p, *, mapping=None):
    """Plant in the arguments that both operators have."""
    return {
        "task_id": "revenue",
        "application": "job.py",
        "conf": {
            f"{OL}type": "http",
            f"{OL}url": f"http://me:{p('conf, transport URL')}@marquez:5000",
            f"{OL}auth.apiKey": p("conf, transport key"),
            "spark.hadoop.fs.s3a.secret.key": p("conf, store"),
            "spark.kafka.jaas": f'PlainLoginModule required password="{p("conf, JAAS")}";',
            "spark.x.url": "jdbc:postgresql://me:{{ conn.warehouse.password }}@h/db",
        },
        "application_args": [
            *("--password", p("argument, of an option"), f"password={p('argument, assigned')}"),
            *("{{ conn.warehouse.password }}", "--token={{ var.value.api_token }}"),
            json.dumps({"password": p("argument, in JSON"), "path": "s3a://lake/x/dt=2024-05-06"}),
            f"s3a://AKIA:{p('argument, a path with keys')}@lake/orders/dt={{{{ ds }}}}",
            f"https://h/orders/dt={{{{ ds }}}}?sig={p('argument, a signed URL')}",
            "s3a://lake/orders/dt={{ ds }}/token={{ conn.warehouse.password }}",
            f"--path s3a://lake/orders/dt={{{{ ds }}}} --password {p('argument, next to a path')}",
            f"{{{{ params.{'secret'} }}}}/s3a://lake/y/dt={{{{ ds }}}}",
        ],
        "env_vars": {"API_KEY": p("env_vars"), "DB": "{{ conn.warehouse.password }}"},
        "jars": f"https://me:{p('jars')}@h/b.jar",
        "packages": "org.example:x:1",
        "repositories": f"https://me:{p('repositories')}@mirror/maven",
        "params": {"secret": p("a parameter")},
        "inlets": [
            Dataset(f"postgres://me:{p('inlets, namespace')}@h:5432", "db.public.x"),
            Asset(f"https://h/orders?sig={p('inlets, asset')}"),
        ],
        "outlets": [Dataset("s3://lake", f"https://me:{p('outlets, name')}@h/x")],
    }


def declarations(p):
    """Plant in the arguments that only ours has."""
    return {
        "reads": [
            f"s3a://AKIA:{p('reads, keys')}@lake/orders",
            f"https://h/orders?sig={p('reads, signature')}",
            "s3a://lake/orders/dt={{ conn.warehouse.password }}",
            DatasetSubset("shop.orders", partitions={"dt": ["{{ var.value.api_token }}"]}),
        ],
        "writes": [
            DatasetSubset("shop.revenue", where="api_token = '{{ conn.warehouse.password }}'"),
        ],
        "listener_extensions": [f"https://me:{p('listener_extensions')}@h/e.jar"],
    }


# --- exits ----------------------------------------------------------------------------------------


class Exits(dict):
    """All that a run leaves, by name."""

    def of_files(self, name, folder):
        for file in sorted(folder.rglob("*")):
            if not file.is_file():
                continue
            where = f"{name}/{file.name}"
            self[where] = self.get(where, "") + str(file) + file.read_text("latin-1")
            if zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as archive:
                    self[where] += "".join(map(str, map(archive.read, archive.namelist())))

    def of_log(self, caplog):
        """Split the log into what our loggers wrote and all of it, as Airflow would write it."""
        form = logging.Formatter().format
        all_, ours = [], []
        for record in caplog.records:
            text = str(redact(form(record)))
            all_.append(text)
            if record.name.startswith(OURS):
                ours.append(text)
        self["log"] = "\n".join(all_)
        self["our log"] = "\n".join(ours)

    def of_submission(self, double):
        given = double.given
        self["arguments of spark-submit"] = json.dumps(given.argv)
        self["environment of spark-submit"] = json.dumps(given.env)


def rendered(operator):
    return json.dumps(
        {name: getattr(operator, name, None) for name in operator.template_fields}, default=repr
    )


@pytest.fixture
def run(spark_submit, execute, context, caplog, tmp_path):
    """Run an operator as the task runner does; give what it leaves."""
    caplog.set_level(logging.DEBUG)
    context |= {
        "ds": "2024-05-06",
        "conn": ConnectionAccessor(),
        "var": {"value": VariableAccessor(deserialize_json=False)},
    }

    def run(task, context=context):
        caplog.clear()
        context["ti"].xcoms.clear()
        context |= {"task": task, "params": task.params.dump()}
        exits = Exits()
        task.render_template_fields(context)
        if has_lineage(type(task)):
            exits["event, START"] = sent(task.get_openlineage_facets_on_start())
        spark_submit.forgets()
        try:
            execute(task)
        except Exception as error:  # as Airflow logs it
            exits["exception"] = str(redact("".join(traceback.format_exception(error))))
        exits.of_log(caplog)
        if spark_submit.ran:
            exits.of_submission(spark_submit)
        exits["XComs"] = json.dumps(context["ti"].xcoms)
        exits["rendered fields"] = str(redact(rendered(task)))
        exits.of_files("bundle", tmp_path / "captures")
        exits.of_files("temporary", tmp_path / "tmp")
        if has_lineage(type(task)):
            exits["event, COMPLETE"] = sent(task.get_openlineage_facets_on_complete(context["ti"]))
            exits["event, FAIL"] = sent(task.get_openlineage_facets_on_failure(context["ti"]))
        return exits

    return run


def sent(lineage):
    return Serde.to_json(lineage) if lineage is not None else ""


def commands(exits, capsys, bundle, task):
    """Run every command that reads a bundle, shows settings, or explains the task."""
    page = Path(bundle).parent / "page.html"
    capsys.readouterr()  # what the jobs have printed
    for argv in (
        ["show", bundle, "--html", str(page)],
        ["show", bundle],
        ["merge", bundle],
        ["trace", "revenue", "--column", "amount", "--events", bundle],
        ["trace", "revenue", "--column", "amount", "--json", "--events", bundle],
        ["explain", "--run", bundle],
        ["explain", "--run", bundle, "--json"],
        ["doctor"],
    ):
        cli.main(argv)
        captured = capsys.readouterr()
        name = " ".join(word for word in argv if word not in (bundle, str(page)))
        exits[f"command {name}"] = f"{captured.out}{captured.err}"
    exits["page"] = page.read_text()
    with mock.patch("airflow.utils.cli.get_bagged_dag", return_value=task.dag):
        for flags in ((), ("--json",)):
            airflow_command("explain", "shop", "revenue", "--logical-date", "2024-05-06", *flags)
            captured = capsys.readouterr()
            exits[f"command airflow explain {flags}"] = f"{captured.out}{captured.err}"
            assert "lake" in captured.out


def airflow_command(name, *argv):
    """Run a command of ``airflow sparklineage``."""
    [group] = cli.airflow_commands()
    command = next(c for c in group.subcommands if c.name == name)
    parser = argparse.ArgumentParser()
    for argument in command.args:
        argument.add_to_parser(parser)
    with contextlib.suppress(SystemExit):
        command.func(parser.parse_args(argv))


def of_settings(exits, capsys):
    """Run every command that shows settings."""
    capsys.readouterr()
    for name in ("settings", "doctor"):
        for flags in ((), ("--json",)):
            airflow_command(name, *flags)
            captured = capsys.readouterr()
            exits[f"command airflow {name} {flags}"] = f"{captured.out}{captured.err}"


# --- what must come out nowhere -------------------------------------------------------------------

# Spark's processes write these, for the merging; they are 0600 in a folder that is 0700.
REPORTED = {
    *("event, dataset namespace", "event, dataset name", "event, data source", "event, exception"),
    *("event, error message", "event, stack trace", "event, Spark property", "event, SQL"),
    *("event, transport property", "event, location", "event, column description"),
    "event, a masked value",
    *("observer, error", "observer, filter", "observer, error of a query"),
}
BY_SPARK = ("bundle/events.ndjson", "bundle/observations.ndjson")
# Commands on a bundle have no Airflow to know its secrets; docs/limits.md says so.
WITHOUT_AIRFLOW = ("command show", "command merge", "command columns", "page")


def is_users_own(leak):
    place, exit_ = leak
    is_shown_by_airflow = exit_ == "rendered fields" and place.startswith("reads")
    is_not_known = place == "event, a masked value" and exit_.startswith(WITHOUT_AIRFLOW)
    return is_shown_by_airflow or is_not_known or (place in REPORTED and exit_ in BY_SPARK)


def with_properties_file(p, tmp_path, **_):
    file = tmp_path / "job.properties"
    file.write_text(
        f"{OL}type=http\n{OL}url=http://me:{p('properties_file, transport URL')}@marquez:5000\n"
        f"{OL}headers.X-Tenant={p('properties_file, header')}\n"
        f"spark.jars=https://me:{p('properties_file, jars')}@h/c.jar\n"
    )
    return {"properties_file": str(file), "conf": {}}


def with_a_wrong_connection(p, monkeypatch, **_):
    fields = {
        "conn_type": "sparklineage",
        "host": f"https://me:{p('lineage connection, host')}@marquez",
        "extra": {"transport": {"type": "http", "url": p("lineage connection, wrong URL")}},
    }
    monkeypatch.setenv("AIRFLOW_CONN_SPARKLINEAGE_DEFAULT", json.dumps(fields))
    return {}


def with_a_user_in_the_transport(p, backend, monkeypatch, **_):
    url = backend.url.replace("//", f"//me:{p('lineage connection, user of the transport')}@")
    fields = {"conn_type": "sparklineage", "extra": {"transport": {"type": "http", "url": url}}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARKLINEAGE_DEFAULT", json.dumps(fields))
    return {}


def with_an_extra_that_is_no_json(p, monkeypatch, **_):
    fields = {
        "conn_type": "sparklineage",
        "extra": f'{{"api_key": {p("lineage connection, extra")}',
    }
    monkeypatch.setenv("AIRFLOW_CONN_SPARKLINEAGE_DEFAULT", json.dumps(fields))
    return {}


def with_a_backend_that_fails(backend, **_):
    backend.status = 500
    return {}


def with_defaults(**_):
    return {}


@pytest.mark.parametrize(
    ("change", "ends", "relay"),
    [
        pytest.param(with_defaults, 0, True, id="succeeds, and events are sent on"),
        pytest.param(with_defaults, 1, False, id="fails"),
        pytest.param(with_a_backend_that_fails, 0, True, id="with a backend that fails"),
        pytest.param(with_properties_file, 0, False, id="with a properties file"),
        pytest.param(with_a_wrong_connection, 0, False, id="with a wrong connection"),
        pytest.param(with_a_user_in_the_transport, 0, True, id="with a user in the transport"),
        pytest.param(with_an_extra_that_is_no_json, 1, False, id="with a broken connection"),
    ],
)
def test_no_secret_of_a_run_comes_out_where_the_stock_operator_shows_none(
    environment, planted, backend, run, capsys, tmp_path, monkeypatch, change, ends, relay
):
    script = json.loads(environment.script.read_text())
    environment.script.write_text(json.dumps({**script, "exit": ends}))
    changed = change(p=planted, tmp_path=tmp_path, monkeypatch=monkeypatch, backend=backend)
    given = {**arguments(planted), **changed}
    stock = planted.leaks(run(SparkSubmitOperator(**given)))
    with DAG("shop", schedule=None):
        task = SparkLineageSubmitOperator(
            **given, **declarations(planted), relay_spark_events=relay
        )
    exits = run(task)
    bundles = [str(folder) for folder in (tmp_path / "captures").glob("*/")]
    if bundles:
        commands(exits, capsys, *bundles, task)
    of_settings(exits, capsys)
    exits["test of the connection"] = str(SparkLineageHook().test_connection())
    exits["events that were sent on"] = "".join(backend.bodies)
    exits["command lines"] = "".join(backend.processes)
    assert "revenue" in exits["XComs"]
    assert bool(backend.bodies) is relay
    assert bool(backend.processes) is relay
    leaks = {leak for leak in planted.leaks(exits) - stock if not is_users_own(leak)}
    assert not leaks, table(leaks)


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "not strict"])
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("LISTENER_JAR", "https://me:{}@h/openlineage-spark_2.13-1.53.0.jar"),
        ("LISTENER_JAR", "/nowhere/{}/x.jar"),
        ("CAPTURE_LOCATION", "/proc/nowhere/{}"),
        ("CAPTURE_LOCATION", "s3://AKIA:{}@bucket/x"),
        ("ARCHIVE_URL", "AKIA:{}@bucket/x"),
        ("WEB_URL", "me:{}@marquez:3000"),
        ("WEB_URL", "marquez/?api_token={}"),
        ("MAX_PARTITIONS", "password={}"),
        ("PARTITIONING", "https://me:{}@h/rules.yaml"),
        ("SPARK_VERSION", "https://me:{}@h"),
        ("BACKEND", "https://me:{}@h"),
    ],
)
def test_what_refuses_a_setting_does_not_show_a_secret_in_it(
    environment, run, capsys, monkeypatch, masker, option, value, strict
):
    planted = Planted()
    secret = planted(f"{option}, {value}")
    if value.startswith("/"):  # by which it is no URL that shows where its password is
        masker.add_mask(secret)
    monkeypatch.setenv(f"AIRFLOW__SPARKLINEAGE__{option}", value.format(secret))
    monkeypatch.delenv("AIRFLOW_CONN_SPARKLINEAGE_DEFAULT")
    task = SparkLineageSubmitOperator(task_id="revenue", application="job.py", strict=strict)
    exits = run(task)
    exits.pop("environment of spark-submit", None)  # it is the worker's own
    of_settings(exits, capsys)
    leaks = planted.leaks(exits)
    assert not leaks, table(leaks)


def test_what_is_expected_with_a_masked_value_is_neither_kept_nor_compared(
    spark_submit, planted, run, masker, tmp_path
):
    secret = planted("a path with a masked value")
    masker.add_mask(secret)
    spark_submit.does("staging_chain")
    path = f"file:///lake/orders/token={secret}"
    task = SparkLineageSubmitOperator(
        task_id="revenue", application="job.py", application_args=[path], reads=[path]
    )
    exits = run(task)
    facets = task.lineage_try.collected["run"]["facets"]
    assert "sparkLineage_partitionCheck" not in facets
    [degradation] = [
        d["message"]
        for d in facets["sparkLineage_capture"]["degradations"]
        if d["code"] == "declaration_unusable"
    ]
    assert degradation == (
        "What is expected of /lake/orders has a value that Airflow masks as a secret, so it is "
        "neither kept nor compared with what is observed."
    )
    leaks = {leak for leak in planted.leaks(exits) if not is_users_own(leak)}
    assert not leaks - {("a path with a masked value", "arguments of spark-submit")}, table(leaks)


def test_the_archive_holds_what_is_sent(environment, planted, run, monkeypatch, tmp_path):
    url = (tmp_path / "archive").as_uri()
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", url)
    run(SparkLineageSubmitOperator(**arguments(planted), **declarations(planted)))
    exits = Exits()
    exits.of_files("archive", tmp_path / "archive")
    assert "archive/1.json" in exits
    assert not planted.leaks(exits), table(planted.leaks(exits))
