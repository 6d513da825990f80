"""The DAGs of files, parsed as Airflow's DAG processor does; nothing is written to its database."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import BundleDagBag

from airflow_provider_sparklineage.cli.output import quietly
from airflow_provider_sparklineage.model.budget import UNLIMITED
from airflow_provider_sparklineage.model.exceptions import UnusableInputError
from airflow_provider_sparklineage.model.frozen import Frozen
from airflow_provider_sparklineage.settings.checks import Check, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.model.budget import Budget

DAG_FILE = "DAG file"


class Parsed(Frozen, frozen=True):
    """What was found.

    :param dags: all that could be imported
    :param problems: of files, and of bundles, that could not
    :param left_out: how many files there was no time for
    """

    dags: list[Any]
    problems: list[Check]
    left_out: int = 0


class _Folder(Frozen, frozen=True):
    """A folder of DAG files, or one file.

    :param root: what import errors, and imports of the files, are relative to
    """

    name: str
    path: Path
    root: Path


def parse(
    given: str | None, progress: Callable[[int], None] = lambda _: None, budget: Budget = UNLIMITED
) -> Parsed:
    """Parse the files of a folder, or of all DAG bundles that are configured.

    :param given: the folder, or one file
    :param progress: takes how many files are done
    :raise UnusableInputError: if there is no such folder
    """
    problems: list[Check] = []
    dags: list[Any] = []
    done = left_out = 0

    def may_parse() -> bool:
        nonlocal done, left_out
        done, left_out = (done, left_out + 1) if budget.is_spent() else (done + 1, left_out)
        progress(done)
        return not left_out

    for folder in [_folder(given)] if given else _configured(problems):
        bag = quietly(partial(_parsed, folder, may_parse))
        dags += bag.dags.values()
        problems += (_unimported(folder, *error) for error in sorted(bag.import_errors.items()))
    return Parsed(dags, problems, left_out)


def _folder(given: str) -> _Folder:
    path = Path(given).expanduser().absolute()
    if not path.exists():
        problem = f"There is no folder {given}."
        raise UnusableInputError(problem, "Give the folder of DAG files, or one file.")
    return _Folder("dags-folder", path, path if path.is_dir() else path.parent)


def _configured(problems: list[Check]) -> Iterator[_Folder]:
    try:
        manager = quietly(DagBundlesManager)
        for bundle in manager.get_all_dag_bundles():
            quietly(bundle.initialize)
            yield _Folder(bundle.name, bundle.path, bundle.path)
    except Exception as error:  # a repository that does not answer, a connection that is wrong
        text = f"Airflow's DAG bundles cannot be used ({type(error).__name__}: {error})."
        problems.append(Check(DAG_FILE, Status.FAILED, text, "Give --dags-folder."))


def _parsed(folder: _Folder, may_parse: Callable[[], bool]) -> BundleDagBag:
    class Bag(BundleDagBag):
        def process_file(self, *args: Any, **kwargs: Any) -> Any:
            if not may_parse():
                return []
            return super().process_file(*args, **kwargs)  # type: ignore[no-untyped-call]

    return Bag(folder.path, bundle_path=folder.root, bundle_name=folder.name)


def _unimported(folder: _Folder, file: str, error: str) -> Check:
    lines = [line for line in error.splitlines() if line.strip()]
    text = f"{folder.root / file} cannot be imported: {lines[-1].strip() if lines else 'unknown'}"
    return Check(DAG_FILE, Status.FAILED, text)
