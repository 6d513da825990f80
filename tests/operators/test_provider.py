"""What Airflow itself sees of the provider."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import warnings
from importlib import metadata
from pathlib import Path

import airflow as airflow_module
import pytest
from airflow.providers.common.compat.sdk import AirflowOptionalProviderFeatureException

from airflow_provider_sparklineage.get_provider_info import get_provider_info
from airflow_provider_sparklineage.operators.pyspark import SparkLineagePySparkOperator
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.settings.options import OPTIONS
from tests.conftest import golden

pytestmark = pytest.mark.airflow

COMMANDS = {
    "provider": "providers get airflow-provider-sparklineage --output json",
    "hooks": "providers hooks --output plain",  # a table would cut off long names
    "behaviours": "providers behaviours",
    "configs": "providers configs",
    "config": "config list --section sparklineage --include-descriptions",
    "schema": "sparklineage schema",
    "trace": f"sparklineage trace revenue --column revenue --events {golden('staging_chain')}",
}


@pytest.fixture(scope="module")
def printed():
    """Run commands of Airflow, all in one process: starting one takes seconds."""
    code = (
        "import sys; from airflow.__main__ import main\n"
        f"for name, command in {COMMANDS!r}.items():\n"
        "    print('COMMAND', name); sys.argv = ['airflow', *command.split()]\n"
        "    try: main()\n"
        "    except SystemExit as end: assert not end.code, (command, end.code)\n"
        "print('COMMAND end')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "300"},
    )
    assert done.returncode == 0, done.stderr
    parts = dict(part.partition("\n")[::2] for part in done.stdout.split("COMMAND ")[1:])
    assert [*parts] == [*COMMANDS, "end"]
    return parts


@pytest.mark.smoke
def test_airflow_knows_the_provider(printed):
    text = printed["provider"]
    [provider] = json.loads(text[text.index("[") :])
    assert provider["Provider"] == "airflow-provider-sparklineage"
    assert provider["Version"] == metadata.version("airflow-provider-sparklineage")


@pytest.mark.smoke
def test_airflow_knows_the_connection_type_and_the_options(printed):
    [hook] = [line for line in printed["hooks"].splitlines() if "sparklineage" in line]
    assert "airflow_provider_sparklineage.hooks.sparklineage.SparkLineageHook" in hook
    assert "Spark Lineage" in hook
    assert "sparklineage" in printed["behaviours"].split()
    assert "airflow-provider-sparklineage" in printed["configs"]
    for option in OPTIONS:
        assert f"{option.name} = " in printed["config"]
        assert option.description.split()[0] in printed["config"]


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
            assert all(is_importable(module) for module in entry["python-modules"])


def is_importable(module):
    """Whether a module can be imported, or names the extra that has the provider it needs."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what other providers depend on
            return bool(importlib.import_module(module))
    except AirflowOptionalProviderFeatureException as error:
        named = re.search(r"pip install 'airflow-provider-sparklineage\[(\w+)\]'", str(error))
        extras = metadata.metadata("airflow-provider-sparklineage").get_all("Provides-Extra")
        return named[1] in extras


def test_the_commands_are_airflow_commands_too(printed):
    assert "SparkLineageCaptureRunFacet" in printed["schema"]


def test_the_path_of_a_column_is_an_airflow_command_too(printed):
    assert re.search(r"1 +orders +dt=2024-05-06 +amount +.* aggregation", printed["trace"])


def test_every_option_has_a_default_that_resolves():
    from airflow_provider_sparklineage.settings.resolution import Origin, Source, resolve

    options = get_provider_info()["config"]["sparklineage"]["options"]
    defaults = {name: option["default"] for name, option in options.items()}
    assert resolve(Source(Origin.CONFIGURATION, defaults)) == resolve()


def test_importing_the_operator_pulls_in_nothing_that_the_stock_operator_does_not():
    # The stock one first, in one process: importing Airflow takes seconds.
    code = "import sys\n" + "".join(
        f"import {module}; print('MODULES', *{{m.partition('.')[0] for m in sys.modules}})\n"
        for module in (
            "airflow.providers.apache.spark.operators.spark_submit",
            "airflow_provider_sparklineage.operators.spark_submit",
        )
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # Airflow may log to standard output as well.
    stock, ours = (
        set(line.split()[1:]) for line in done.stdout.splitlines() if line.startswith("MODULES")
    )
    assert "airflow_provider_sparklineage" in ours
    assert ours - stock - set(sys.stdlib_module_names) <= {"airflow_provider_sparklineage"}
    assert "pyspark" not in ours


@pytest.mark.parametrize(
    "cls", [SparkLineageSubmitOperator, SparkLineagePySparkOperator], ids=lambda cls: cls.__name__
)
def test_docstrings_mark_exactly_the_template_fields(cls):
    marked = {
        line.split(":")[1].removeprefix("param ").strip()
        for line in inspect.cleandoc(cls.__doc__).replace("\n    ", " ").splitlines()
        if line.strip().startswith(":param") and "(templated)" in line
    }
    own = set(cls.template_fields) - set(cls.__bases__[-1].template_fields)
    assert marked == own
