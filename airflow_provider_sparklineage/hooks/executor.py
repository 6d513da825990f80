"""Where Airflow's executor runs tasks, and the archive that follows from it if none is configured.

Only where all tasks run on the scheduler's machine do workers, API server and commands see the same
folder. So one executor that is not local is enough for none.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from airflow.providers.common.compat.sdk import conf as airflow_conf

from airflow_provider_sparklineage.settings.resolution import Origin, Source

_LOCAL = "LocalExecutor"
# Airflow sets them where a remote executor's task runs, whose own configuration often says "local".
_ELSEWHERE = ("AIRFLOW_IS_K8S_EXECUTOR_POD", "AIRFLOW_IS_EXECUTOR_CONTAINER")


def default_archive() -> Source:
    """Give the archive that is used if none is configured, as a source of settings."""
    if remote():
        return Source(Origin.EXECUTOR)
    home = Path(os.environ.get("AIRFLOW_HOME") or "~/airflow").expanduser().absolute()
    folder = os.path.expandvars(home / "sparklineage" / "archive")
    return Source(Origin.EXECUTOR, {"archive_url": f"file://{folder}"})


def remote() -> tuple[str, ...]:
    """Name the executors that run tasks on other machines."""
    if any(map(os.environ.get, _ELSEWHERE)):
        return ("a remote executor",)
    configured = airflow_conf.get("core", "executor", fallback=_LOCAL) or _LOCAL
    # One or more for each team: "LocalExecutor;team=alias:my.module.MyExecutor,CeleryExecutor".
    names = (re.split(r"[=:.]", one.strip())[-1] for one in re.split("[;,]", configured))
    return tuple(dict.fromkeys(name for name in names if name and name != _LOCAL))
