"""Run DAGs with the Airflow that the environment names: ``run_dags.py FOLDER RESULT DAG ...``.

The result is a file with each DAG of the folder as Airflow keeps it. Those that are named are run,
as ``airflow dags test`` would. ``WITHOUT_US`` in the environment makes this a Python in which the
package is not installed.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from importlib.metadata import Distribution

DAY = datetime(2024, 5, 6, tzinfo=UTC)
US = "airflow-provider-sparklineage"


def main(folder: str, result: str, *dag_ids: str) -> None:
    """Parse all DAGs as the DAG processor does, and run some."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag
    from airflow.listeners.listener import get_listener_manager
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.serialization.definitions.dag import SerializedDAG
    from airflow.serialization.serialized_objects import LazyDeserializedDAG

    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(folder)
    lazy = {dag_id: LazyDeserializedDAG.from_dag(dag) for dag_id, dag in bag.dags.items()}
    kept = {dag_id: dag.data for dag_id, dag in sorted(lazy.items())}
    Path(result).write_text(json.dumps(kept, indent=1, sort_keys=True))
    for dag_id in dag_ids:
        SerializedDAG.bulk_write_to_db("dags-folder", None, [lazy[dag_id]])
        SerializedDagModel.write_dag(lazy[dag_id], bundle_name="dags-folder")
        bag.dags[dag_id].test(logical_date=DAY)
    get_listener_manager().hook.before_stopping(component=None)  # waits for the last events


def hide() -> None:
    """Let no distribution of ours be found, by either library that Airflow asks."""
    for library in ("importlib.metadata", "importlib_metadata"):
        with suppress(ModuleNotFoundError):
            of_library = importlib.import_module(library).Distribution
            of_library.discover = staticmethod(partial(others, of_library.discover))


def others(discover: Callable[..., Iterable[Distribution]], **context: object) -> Any:
    """Give all distributions but ours."""
    return (found for found in discover(**context) if found.metadata["Name"] != US)


if __name__ == "__main__":
    if "WITHOUT_US" in os.environ:
        hide()
    main(*sys.argv[1:])
    if "WITHOUT_US" in os.environ:
        assert [name for name in sys.modules if name.startswith("airflow_provider_spark")] == []
