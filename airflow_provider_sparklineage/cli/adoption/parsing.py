"""The DAGs of files, parsed as Airflow's DAG processor does; nothing is written to its database."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.dag_processing.bundles.local import LocalDagBundle
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import BundleDagBag

from airflow_provider_sparklineage.cli.output import quietly
from airflow_provider_sparklineage.model.budget import UNLIMITED
from airflow_provider_sparklineage.model.exceptions import UnusableInputError
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.settings.checks import Check, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.model.budget import Budget

DAG_FILE = "DAG file"


class Parsed(Frozen, frozen=True):
    """What was found.

    :param dags: all that could be imported, by their ids
    :param problems: of files, and of bundles, that could not
    :param is_all: whether no file was left out
    """

    dags: list[Any]
    problems: list[Check]
    is_all: bool


def parse(
    given: str | None,
    progress: Callable[[int], None] = lambda _: None,
    budget: Budget = UNLIMITED,
    *,
    fetches: bool = True,
) -> Parsed:
    """Parse the files of a folder, or of all DAG bundles that are configured.

    :param given: the folder, or one file
    :param progress: takes how many files are done
    :param budget: of time; files that there is none for are left out
    :param fetches: whether bundles may be fetched, or else are left out
    :raise UnusableInputError: if there is no such folder
    """
    parsing = _Parsing(progress, budget)
    if given:
        path = Path(given).expanduser().absolute()
        if not path.exists():
            problem = f"There is no folder {given}."
            raise UnusableInputError(problem, "Give the folder of DAG files, or one file.")
        parsing.add("dags-folder", path, path if path.is_dir() else path.parent)
    else:
        parsing.add_bundles(fetches=fetches)
    dags = sorted(parsing.dags, key=lambda dag: str(dag.dag_id))
    return Parsed(dags, parsing.problems, parsing.is_all)


class _Parsing:
    """Folders to DAGs, one folder after the other."""

    def __init__(self, progress: Callable[[int], None], budget: Budget) -> None:
        self.dags: list[Any] = []
        self.problems: list[Check] = []
        self.is_all = True
        self._progress = progress
        self._budget = budget
        self._done = 0

    def add_bundles(self, *, fetches: bool) -> None:
        try:
            for bundle in quietly(DagBundlesManager).get_all_dag_bundles():
                if fetches or isinstance(bundle, LocalDagBundle):
                    quietly(bundle.initialize)
                    self.add(bundle.name, bundle.path, bundle.path)
                else:
                    self.is_all = False
        except Exception as error:  # a repository that does not answer, a connection that is wrong
            text = f"Airflow's DAG bundles cannot be used ({type(error).__name__}: {error})."
            self.problems.append(Check(DAG_FILE, Status.FAILED, text, "Give --dags-folder."))

    def add(self, name: str, path: Path, root: Path) -> None:
        """Add the DAGs of a folder, or of one file.

        :param root: what import errors, and imports of the files, are relative to
        """
        bag = quietly(partial(self._bag, path, root, name))
        self.dags += bag.dags.values()
        for file, error in sorted(bag.import_errors.items()):
            lines = [line.strip() for line in error.splitlines() if line.strip()]
            text = f"{root / file} cannot be imported: {lines[-1] if lines else 'no reason given'}"
            self.problems.append(Check(DAG_FILE, Status.FAILED, text))

    def _bag(self, path: Path, root: Path, name: str) -> BundleDagBag:
        may_parse = self._may_parse

        class Bag(BundleDagBag):
            def process_file(self, *args: Any, **kwargs: Any) -> Any:
                if not may_parse():
                    return []
                return super().process_file(*args, **kwargs)  # type: ignore[no-untyped-call]

        return Bag(path, bundle_path=root, bundle_name=name)

    def _may_parse(self) -> bool:
        if self._budget.is_spent():
            self.is_all = False
            return False
        self._done += 1
        self._progress(self._done)
        return True
