"""What Airflow itself sees of the provider."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import airflow as airflow_module
import pytest

from airflow_provider_sparklineage.get_provider_info import get_provider_info
from airflow_provider_sparklineage.settings.options import OPTIONS
from tests.conftest import golden

pytestmark = pytest.mark.airflow

BIN = Path(sys.executable).parent


def airflow(*argv):
    return subprocess.run([BIN / "airflow", *argv], capture_output=True, text=True, check=False)


@pytest.mark.smoke
def test_airflow_knows_the_provider():
    done = airflow("providers", "get", "airflow-provider-sparklineage", "--output", "json")
    assert done.returncode == 0, done.stderr
    [provider] = json.loads(done.stdout[done.stdout.index("[") :])
    assert provider["Provider"] == "airflow-provider-sparklineage"
    assert provider["Version"] == metadata.version("airflow-provider-sparklineage")


@pytest.mark.smoke
def test_airflow_knows_the_connection_type_and_the_options():
    # One process for several commands: starting one takes seconds.
    code = (
        "import sys; from airflow.__main__ import main\n"
        "config = ['config', 'list', '--section', 'sparklineage', '--include-descriptions']\n"
        "for argv in *(['providers', x] for x in ('hooks', 'behaviours', 'configs')), config:\n"
        "    print('COMMAND', *argv); sys.argv = ['airflow', *argv]; main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "300"},
    )
    assert done.returncode == 0, done.stderr
    printed = dict(part.partition("\n")[::2] for part in done.stdout.split("COMMAND ")[1:])
    [hook] = [line for line in printed["providers hooks"].splitlines() if "sparklineage" in line]
    assert "airflow_provider_sparklineage.hooks.sparklineage.SparkLineageHook" in hook
    assert "Spark Lineage" in hook
    assert "sparklineage" in printed["providers behaviours"].split()
    assert "airflow-provider-sparklineage" in printed["providers configs"]
    listed = printed["config list --section sparklineage --include-descriptions"]
    for option in OPTIONS:
        assert f"{option.name} = " in listed
        assert option.description.split()[0] in listed


def test_the_provider_info_is_as_airflows_schema_wants_it():
    import jsonschema

    schema = json.loads(
        (Path(airflow_module.__file__).parent / "provider_info.schema.json").read_text()
    )
    info = get_provider_info()
    jsonschema.validate(info, schema)
    for entry in info["connection-types"]:
        module, _, name = entry["hook-class-name"].rpartition(".")
        hook = getattr(importlib.import_module(module), name)
        assert (hook.conn_type, hook.hook_name) == (entry["connection-type"], entry["hook-name"])
    for group in ("operators", "hooks"):
        for entry in info[group]:
            assert all(importlib.import_module(module) for module in entry["python-modules"])


def test_the_commands_are_airflow_commands_too():
    done = airflow("sparklineage", "schema")
    assert done.returncode == 0, done.stderr
    assert "SparkLineageCaptureRunFacet" in done.stdout


def test_the_path_of_a_column_is_an_airflow_command_too():
    done = airflow(
        "sparklineage", "columns", str(golden("staging_chain")), "--column", "revenue:revenue"
    )
    assert done.returncode == 0, done.stderr
    assert "← /lake/orders:amount  DIRECT/AGGREGATION" in done.stdout


def test_every_option_has_a_default_that_resolves():
    from airflow_provider_sparklineage.settings.resolution import Origin, Source, resolve

    options = get_provider_info()["config"]["sparklineage"]["options"]
    defaults = {name: option["default"] for name, option in options.items()}
    assert resolve(Source(Origin.CONFIGURATION, defaults)) == resolve()


def test_importing_the_operator_pulls_in_nothing_that_the_stock_operator_does_not():
    def modules(module):
        # Airflow may log to standard output as well.
        code = (
            f"import {module}, sys; print('MODULES', *(m.partition('.')[0] for m in sys.modules))"
        )
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        [line] = [x for x in done.stdout.splitlines() if x.startswith("MODULES")]
        return set(line.split()[1:])

    ours = modules("airflow_provider_sparklineage.operators.spark_submit")
    stock = modules("airflow.providers.apache.spark.operators.spark_submit")
    assert ours - stock - set(sys.stdlib_module_names) <= {"airflow_provider_sparklineage"}
    assert "pyspark" not in ours


@pytest.mark.parametrize("class_name", ["SparkLineageMixin", "SparkLineageSubmitOperator"])
def test_docstrings_mark_exactly_the_template_fields(class_name):
    from airflow_provider_sparklineage.operators import spark_submit

    cls = getattr(spark_submit, class_name)
    marked = {
        line.split(":")[1].removeprefix("param ").strip()
        for line in inspect.cleandoc(cls.__doc__).replace("\n    ", " ").splitlines()
        if line.strip().startswith(":param") and "(templated)" in line
    }
    own = set(spark_submit.SparkLineageSubmitOperator.template_fields) - set(
        spark_submit.SparkSubmitOperator.template_fields
    )
    assert marked == own
