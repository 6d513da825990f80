"""The programs of a Kubernetes, and of its Spark operator, built from their sources by Go.

They come as Go modules, as Go itself fetches them, are built once for each version, and are kept
next to the fetched listeners, outside of the checkout.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_sparklineage.spark.submit import fetching

KUBERNETES = "1.36.3"
SPARK_OPERATOR = "2.4.0"


class ProgramsError(Exception):
    """Raised when the programs cannot be had; says why, and what to do."""


@dataclass(frozen=True)
class _Module:
    """A Go module whose programs are built.

    :param packages: of the programs; they may be of modules that this one needs
    :param staging: version of the modules that it has in its own folder in its repository, and that
        are published on their own; they stand in its list of replacements as folders
    :param values: what the linker sets, by the names of variables
    """

    path: str
    version: str
    packages: tuple[str, ...]
    staging: str = ""
    values: tuple[tuple[str, str], ...] = ()


_VERSION = "k8s.io/component-base/version"
_MAJOR, _MINOR, _PATCH = KUBERNETES.split(".")
_MODULES = (
    _Module(
        "k8s.io/kubernetes",
        f"v{KUBERNETES}",
        (
            "k8s.io/kubernetes/cmd/kube-apiserver",
            "k8s.io/kubernetes/cmd/kube-controller-manager",
            "go.etcd.io/etcd/server/v3",
        ),
        staging=f"v0.{_MINOR}.{_PATCH}",
        # A server without a version of its own refuses to start.
        values=(
            (f"{_VERSION}.gitVersion", f"v{KUBERNETES}"),
            (f"{_VERSION}.gitMajor", _MAJOR),
            (f"{_VERSION}.gitMinor", _MINOR),
        ),
    ),
    _Module(
        "github.com/kubeflow/spark-operator/v2",
        f"v{SPARK_OPERATOR}",
        ("github.com/kubeflow/spark-operator/v2/cmd/operator",),
    ),
)
_NAMES = {"server": "etcd", "operator": "spark-operator"}
"""Of programs that are called by the last part of their package."""
DEFINITIONS = "definitions"
"""Folder with the operator's definitions of SparkApplications and others, next to the programs."""
_DEFINITIONS = "config/crd/bases"


def folder() -> Path:
    """Give the folder with ``etcd``, ``kube-apiserver``, …, built if they are not kept.

    Of several processes one builds and the others wait for it.

    :raise ProgramsError: if they cannot be built
    """
    kept = fetching.cache_folder() / "tests" / f"kubernetes-{KUBERNETES}-{SPARK_OPERATOR}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.with_name(f"{kept.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            _build(kept)
    return kept


def _build(kept: Path) -> None:
    go = shutil.which("go")
    if go is None:
        message = (
            f"Kubernetes {KUBERNETES} is built from its sources, and there is no `go` on the PATH. "
            "Install Go 1.26 or newer."
        )
        raise ProgramsError(message)
    print(
        f"Building Kubernetes {KUBERNETES} and its Spark operator {SPARK_OPERATOR}: once, in 10 to "
        "40 minutes, with 4 GB of disk …",
        file=sys.__stderr__,
    )
    with tempfile.TemporaryDirectory(prefix=".build-", dir=kept.parent) as work:
        built = Path(work) / "built"
        for number, module in enumerate(_MODULES):
            made = Path(work) / str(number)
            made.mkdir()
            source = _build_module(go, module, made)
            built.mkdir(exist_ok=True)
            for program in (made / "bin").iterdir():
                program.rename(built / _NAMES.get(program.name, program.name))
        (built / DEFINITIONS).mkdir()
        for definition in (source / _DEFINITIONS).iterdir():
            # Files of Go's own folder cannot be written to, nor would a copy of their modes.
            shutil.copyfile(definition, built / DEFINITIONS / definition.name)
        built.rename(kept)


def _build_module(go: str, module: _Module, work: Path) -> Path:
    """Build the programs of a module into ``bin`` of a folder; give the folder of its sources."""
    found = json.loads(_go(go, work, "mod", "download", "-json", f"{module.path}@{module.version}"))
    described = json.loads(_go(go, work, "mod", "edit", "-json", found["GoMod"]))
    lines = ["module programs", f"go {described['Go']}", f"require {module.path} {module.version}"]
    for replaced in described.get("Replace") or ():
        old, new = replaced["Old"]["Path"], replaced["New"]
        # A folder is of the module's repository, and not in what is fetched.
        version = new.get("Version")
        target = f"{new['Path']} {version}" if version else f"{old} {module.staging}"
        lines.append(f"replace {old} => {target}")
    (work / "go.mod").write_text("\n".join(lines) + "\n")
    # A program may be of a module that only a module needs that this one needs.
    _go(go, work, "list", "-deps", *module.packages)
    values = " ".join(f"-X {name}={value}" for name, value in module.values)
    (work / "bin").mkdir()
    flags = ("-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {values}".strip())
    _go(go, work, "build", "-p", "2", *flags, "-o", "bin/", *module.packages)
    return Path(found["Dir"])


def _go(go: str, work: Path, *arguments: str) -> str:
    """Run Go; give its output.

    :raise ProgramsError: if it fails
    """
    own = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    ran = subprocess.run(
        [go, *arguments],
        cwd=work,
        env={**os.environ, **own},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        printed = "\n".join(ran.stderr.splitlines()[-30:])
        message = (
            f"`go {' '.join(arguments)}` has failed. Check that this machine reaches a proxy of Go "
            f"modules (GOPROXY), and has Go 1.26 or newer.\n{printed}"
        )
        raise ProgramsError(message)
    return ran.stdout


if __name__ == "__main__":
    print(folder())
