"""The pins of every environment satisfy pyproject.toml; if not, `.ci/compile-pins` fixes them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from airflow_provider_sparklineage.spark.submit import listener
from tests.record_events import CONNECTORS

ROOT = next(p for p in Path(__file__).parents if (p / "pyproject.toml").is_file())
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FILES = sorted((ROOT / ".ci").glob("requirements-*.txt"))
PYTHONS = ("3.11", "3.12", "3.13")
AIRFLOWS = ("3.0", "3.1", "3.2")
SPARKS = ("3.5", "4.0", "4.2")


def group(name):
    """Give the requirements of a dependency group with those of the groups in it."""
    for entry in PYPROJECT["dependency-groups"][name]:
        if isinstance(entry, str):
            yield Requirement(entry)
        else:
            yield from group(entry["include-group"])


def demanded(environment):
    """Give what pyproject.toml demands of an environment, which has the name of its file."""
    if environment == "pipelines":  # a Spark alone
        return [Requirement("pyspark==4.2.*"), Requirement("grpcio"), Requirement("pandas")]
    if environment == "kerberos":
        return list(group("kerberos"))
    own = [Requirement(line) for line in PYPROJECT["project"]["dependencies"]]
    extras = PYPROJECT["project"]["optional-dependencies"]
    own += [Requirement(line) for line in extras["pyspark"]]
    if environment.startswith("spark-"):
        spark = Requirement(f"pyspark=={environment.removeprefix('spark-')}.*")
        return [*(r for r in own if "airflow" not in r.name), *group("test"), spark]
    own += [Requirement(line) for line in extras["history"]]
    if environment == "services":
        own += [Requirement(line) for name in ("google", "azure") for line in extras[name]]
    if not environment.startswith("airflow-"):
        return [*own, *group("dev")]
    airflow = Requirement(f"apache-airflow=={environment.removeprefix('airflow-')}.*")
    return [*own, *(r for r in group("dev") if r.name != airflow.name), airflow]


def pinned(pins, python):
    """Give the versions in the text of a requirements file by name, for a Python."""
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    versions = {}
    for line in pins.splitlines():
        if line[:1] not in ("", " ", "#"):
            pin = Requirement(line.removesuffix("\\"))
            if pin.marker is None or pin.marker.evaluate(environment):
                [version] = pin.specifier
                versions[canonicalize_name(pin.name)] = version.version
    return versions


def unmet(pins, demands, python):
    """Give each demand that the text of a requirements file does not meet for a Python."""
    versions = pinned(pins, python)
    for demand in demands:
        version = versions.get(canonicalize_name(demand.name))
        if version is None:
            yield f"{demand} is not pinned"
        elif not demand.specifier.contains(version, prereleases=True):
            yield f"{demand.name}=={version} is not {demand}"


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_pins_satisfy_what_is_demanded(file, python):
    demands = demanded(file.stem.removeprefix("requirements-"))
    assert list(unmet(file.read_text(), demands, python)) == []


def test_each_supported_environment_has_its_pins():
    expected = [
        *(f"airflow-{airflow}" for airflow in AIRFLOWS),
        "dev",
        "kerberos",
        "pipelines",
        "services",
        *(f"spark-{spark}" for spark in SPARKS),
    ]
    assert [file.stem.removeprefix("requirements-") for file in FILES] == expected


def test_the_readme_names_the_versions_that_are_pinned():
    """Its first version of each row is that of the development environment."""
    rows = [
        line.split("|")[1:3]
        for line in (ROOT / "README.md").read_text().splitlines()
        if line.startswith("|") and line.count("|") == 4
    ]
    in_readme = {name.strip(): tested.strip() for name, tested in rows}
    of = {
        file.stem.removeprefix("requirements-"): pinned(file.read_text(), "3.11") for file in FILES
    }
    sparks = ("dev", "spark-3.5", "spark-4.2")
    provider = "apache-airflow-providers-{}"
    delta, iceberg = (
        [
            CONNECTORS[spark].get(connector, f":none yet for Spark {spark}").rpartition(":")[2]
            for spark in ("4.0", "3.5", "4.2")
        ]
        for connector in ("delta", "iceberg")
    )
    expected = {
        "Airflow": [
            of[name]["apache-airflow"]
            for name in ("dev", "airflow-3.2", "airflow-3.1", "airflow-3.0")
        ],
        "apache-spark provider, openlineage provider": [
            of["dev"][provider.format(name)] for name in ("apache-spark", "openlineage")
        ],
        "Spark (classic PySpark, driver on the worker)": [of[name]["pyspark"] for name in sparks],
        "… its tables of Delta": delta,
        "… its tables of Iceberg": iceberg,
        "OpenLineage listener": [listener.VERSION],
    }
    assert {name: in_readme.get(name) for name in expected} == {
        name: ", ".join(versions) for name, versions in expected.items()
    }


PIN = "    --hash=sha256:0\n    # via a\n"


@pytest.mark.parametrize(
    ("pins", "expected"),
    [
        (f"pendulum==3.3.0 \\\n{PIN}", []),
        (f"Pendulum==3.1 \\\n{PIN}", []),
        (f"pendulum==3.0.1 \\\n{PIN}", ["pendulum==3.0.1 is not pendulum>=3.1"]),
        (f"pend==3.3.0 \\\n{PIN}", ["pendulum>=3.1 is not pinned"]),
        ("    # pendulum==3.3.0\n", ["pendulum>=3.1 is not pinned"]),
        (
            f"pendulum==3.3.0 ; python_full_version < '3.12' \\\n{PIN}",
            ["pendulum>=3.1 is not pinned"],
        ),
        (
            f"pendulum==3.0 ; python_full_version < '3.12' \\\n{PIN}"
            f"pendulum==3.2 ; python_full_version >= '3.12' \\\n{PIN}",
            [],
        ),
    ],
    ids=["met", "at the limit", "too old", "missing", "comment", "another Python", "one for each"],
)
def test_what_is_unmet_is_reported_with_both(pins, expected):
    assert list(unmet(pins, [Requirement("pendulum>=3.1")], "3.12")) == expected
