"""Surveys the tasks of DAGs: whether each is adopted, why, and which rule declares its datasets.

An adopted task has lineage although its DAG was written without it (``operators/adoption``).
DAG files are parsed as Airflow's DAG processor parses them, but nothing is written to Airflow's
database. Each task of a Spark operator is a row. If a rule or a glob matches no task, or several
declarations match one task, that is a problem. The survey is printed as a table for people, or
given as a document (``schemas/adoption.json``).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from airflow.dag_processing.bundles.local import LocalDagBundle
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import BundleDagBag
from msgspec import field, to_builtins
from rich.table import Table

from airflow_provider_sparklineage.cli import commands, show
from airflow_provider_sparklineage.hooks.sources import configuration
from airflow_provider_sparklineage.model import exceptions, task_rules
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.texts import some
from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.checks import Check, Status, failed, warning

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.model.task_rules import TaskNames, TaskRule


# --- DAGs of files --------------------------------------------------------------------------------


DAG_FILE = "DAG file"


def parse_dags(
    given: str | None,
    progress: Callable[[int], None] = lambda _: None,
    budget: Budget = UNLIMITED,
    *,
    fetches: bool = True,
) -> ParsedDags:
    """Parse the DAG files of a folder, or of all DAG bundles that are configured.

    :param given: the folder, or one file; empty for the bundles
    :param progress: a function that is called with the number of the file being parsed, from 1
    :param budget: the time for parsing; when it is spent, the other files are left out
    :param fetches: whether bundles that are not local are fetched; if not, they are left out
    :raise UnusableInputError: if the folder or file does not exist
    """
    parsed = ParsedDags(progress, budget)
    if given:
        path = Path(given).expanduser().absolute()
        if not path.exists():
            commands.refuse(
                f"There is no folder {given}.", "Give the folder of DAG files, or one file."
            )
        parsed.add("dags-folder", path, path if path.is_dir() else path.parent)
    else:
        parsed.add_bundles(fetches=fetches)
    parsed.dags.sort(key=lambda dag: str(dag.dag_id))
    return parsed


class ParsedDags:
    """The DAGs of files, which are parsed one folder after the other."""

    def __init__(self, progress: Callable[[int], None], budget: Budget) -> None:
        self.dags: list[Any] = []
        """All DAGs that could be imported."""
        self.problems: list[Check] = []
        """Failed checks of the files and bundles that could not be imported or used."""
        self.is_all = True
        """Whether no file was left out."""
        self._progress = progress
        self._budget = budget
        self._done = 0

    def add_bundles(self, *, fetches: bool) -> None:
        """Add the DAGs of all bundles that are configured.

        :param fetches: whether bundles that are not local are fetched; if not, they are left out
        """
        try:
            for bundle in commands.quietly(DagBundlesManager).get_all_dag_bundles():
                if fetches or isinstance(bundle, LocalDagBundle):
                    commands.quietly(bundle.initialize)
                    self.add(bundle.name, bundle.path, bundle.path)
                else:
                    self.is_all = False
        except Exception as error:  # a repository that does not answer, a connection that is wrong
            text = f"Airflow's DAG bundles cannot be used ({type(error).__name__}: {error})."
            self.problems.append(failed(DAG_FILE, text, "Give --dags-folder."))

    def add(self, name: str, path: Path, root: Path) -> None:
        """Add the DAGs of a folder, or of one file.

        :param name: name of the DAG bundle
        :param root: the folder for imports by the files; paths in import errors are relative to it
        """
        bag = commands.quietly(partial(self._bag, path, root, name))
        self.dags += bag.dags.values()
        for file, error in sorted(bag.import_errors.items()):
            lines = [line.strip() for line in error.splitlines() if line.strip()]
            text = f"{root / file} cannot be imported: {lines[-1] if lines else 'no reason given'}"
            self.problems.append(failed(DAG_FILE, text))

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


# --- rules, and the tasks that they are for -------------------------------------------------------


_NAMED = 3
_NOTHING = {
    "dag_id": "no DAG with a Spark operator",
    "task_id": "no task of a Spark operator",
    "operator": "no Spark operator",
    "tags": "no tag of a DAG with a Spark operator",
}


class Matches(Frozen, frozen=True):
    """The tasks that each rule of a list matches.

    :param tasks: a list of tasks for each rule, in the order of the rules
    """

    rules: Sequence[TaskRule]
    tasks: Sequence[list[TaskNames]]

    @classmethod
    def of(cls, rules: Sequence[TaskRule], tasks: Iterable[TaskNames]) -> Matches:
        """Match each rule with all tasks."""
        by_dag: dict[str, list[TaskNames]] = defaultdict(list)
        for task in tasks:
            by_dag[task.dag_id].append(task)
        # Each rule is matched with all DAGs before the next rule is, so that each glob is compiled
        # only once, even if there are a thousand.
        return cls(rules, [[*_matching(rule, by_dag)] for rule in rules])

    def numbers(self) -> Mapping[TaskNames, list[int]]:
        """Give the numbers, from 0, of the rules that match each task."""
        found: dict[TaskNames, list[int]] = defaultdict(list)
        for number, tasks in enumerate(self.tasks):
            for task in tasks:
                found[task].append(number)
        return found

    def unmatched(self, tasks: Sequence[TaskNames]) -> Iterator[str]:
        """Yield a sentence for each rule that matches no task.

        For any other rule, yield a sentence for each of its globs that matches none of its tasks.

        :param tasks: all tasks with which the rules were matched
        """
        for number, (rule, matching) in enumerate(zip(self.rules, self.tasks, strict=True)):
            if matching:
                # A key with only one glob is left out: that glob has matched all these tasks.
                globs = [(key, globs) for key, globs in rule.globs if len(globs) > 1]
                for text in _unmatched_globs(globs, matching):
                    yield f"{rule_text(rule, number)}: {text}."
            else:
                reasons = (
                    "; ".join(_unmatched_globs(rule.globs, tasks))
                    or "no task has all that it asks for"
                )
                yield f"{rule_text(rule, number)} is for no task: {reasons}."

    def doubled(self, chosen: set[TaskNames]) -> Iterator[str]:
        """Yield a sentence for each set of two or more rules that match the same tasks.

        The sentence says that only the first of these rules acts for the tasks.

        :param chosen: the tasks that count; other tasks are ignored
        """
        by_rules: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for task, numbers in self.numbers().items():
            if len(numbers) > 1 and task in chosen:
                by_rules[tuple(numbers)].append(f"{task.dag_id}.{task.task_id}")
        for (first, *others), tasks in sorted(by_rules.items()):
            rest = " or ".join(rule_text(self.rules[n], n).lower() for n in others)
            acting = rule_text(self.rules[first], first)
            yield f"{acting} acts for {some(tasks, _NAMED)}, and never {rest}."


def rule_text(rule: TaskRule, number: int) -> str:
    """Name a rule at the beginning of a sentence: ``Rule 2 (line 7)``.

    :param number: number of the rule, from 0; the text has the number from 1
    """
    return f"Rule {number + 1}" + (f" (line {rule.line})" if rule.line else "")


def _matching(rule: TaskRule, by_dag: dict[str, list[TaskNames]]) -> Iterator[TaskNames]:
    dags = dict(rule.globs).get("dag_id")
    for dag_id, tasks in by_dag.items():
        if dags is None or any(task_rules.is_like(glob, dag_id) for glob in dags):
            yield from filter(rule.matches, tasks)


def _unmatched_globs(
    by_key: Iterable[tuple[str, tuple[str, ...]]], tasks: Sequence[TaskNames]
) -> Iterator[str]:
    for key, globs in by_key:
        values = {value for task in tasks for value in task.values(key)}
        for glob in globs:
            if not any(task_rules.is_like(glob, value) for value in values):
                yield f"{_NOTHING[key]} is like {glob!r}"


# --- the survey -----------------------------------------------------------------------------------


ADOPT, DECLARATIONS = "adopt", "declarations"
_FIX_GLOB = "Correct it, or take it out."


class Row(Frozen, frozen=True):
    """A task of a Spark operator.

    :param operator: name of the operator on Airflow's pages
    :param path: import path of the operator's class
    :param rule: number, from 1, of the adoption rule that decides; None if no rule decides
    :param declaration: number, from 1, of the declaration that applies; None if none applies
    """

    dag_id: str
    task_id: str
    operator: str
    path: str = field(name="class")
    adopted: bool
    reason: str
    rule: int | None = None
    declaration: int | None = None


class Rules(Frozen, frozen=True):
    """The configured rules: of adoption, and of declarations.

    :param declarations: rules that declare the datasets of adopted tasks
    :param off: the reason to show for a task if adoption is off, or if its rules cannot be read
    :param problems: failed checks of settings that cannot be read
    """

    adoption: task_rules.AdoptionRules
    declarations: task_rules.TaskDeclarations
    off: str
    problems: list[Check]

    @classmethod
    def of(cls, adopt: str, declared: str) -> Rules:
        """Read the rules from the two settings; one that cannot be read gives a problem instead.

        :param adopt: the value of ``[sparklineage] adopt``
        :param declared: the value of ``[sparklineage] declarations``
        """
        problems: list[Check] = []
        rules, declaring, off = task_rules.ADOPT_NONE, task_rules.TaskDeclarations(), adopting.OFF
        try:
            rules = task_rules.load_adoption(adopt)
        except exceptions.RulesError as error:
            problems.append(failed(ADOPT, error))
            off = "left alone: the rules cannot be read"
        try:
            declaring = task_rules.load_declarations(declared)
        except exceptions.RulesError as error:
            problems.append(failed(DECLARATIONS, error))
        return cls(rules, declaring, off, problems)


class Survey(Frozen, frozen=True):
    """All tasks of Spark operators, and warnings about rules.

    :param problems: rules and globs that match no task, and declarations that match a task twice,
        or no adopted task
    """

    rows: list[Row]
    problems: list[Check]


def survey(dags: Iterable[Any], rules: Rules) -> Survey:
    """Decide for each task of a Spark operator whether it is adopted, and check the rules.

    :param dags: Airflow's DAG objects
    """
    tasks = [(task, adopting.names_of(task)) for dag in dags for task in dag.tasks]
    of_spark = [(task, names) for task, names in tasks if names is not None]
    names = [names for _, names in of_spark]
    declares = Matches.of(rules.declarations.rules, names)
    numbers = declares.numbers()
    rows = [_row(task, of_task, rules, numbers) for task, of_task in of_spark]
    adopted = {of_task for of_task, row in zip(names, rows, strict=True) if row.adopted}
    adopts = Matches.of(rules.adoption.rules, names)
    problems = [
        *_warnings(ADOPT, adopts.unmatched(names), _FIX_GLOB),
        *_warnings(DECLARATIONS, declares.unmatched(names), _FIX_GLOB),
        *_warnings(DECLARATIONS, declares.doubled(adopted), "Keep one."),
    ]
    if adopted:
        problems += _warnings(DECLARATIONS, _useless(declares, adopted), "Adopt one of them.")
    return Survey(rows, problems)


def _row(
    task: Any,
    names: TaskNames,
    rules: Rules,
    declared: Mapping[TaskNames, list[int]],
) -> Row:
    decision = adopting.decide(task, rules.adoption)
    return Row(
        names.dag_id,
        names.task_id,
        task.operator_name,
        names.operators[0],
        decision.adopts,
        rules.off if decision.reason == adopting.OFF else decision.reason,
        None if decision.rule is None else decision.rule + 1,
        declared[names][0] + 1 if decision.adopts and names in declared else None,
    )


def _warnings(name: str, texts: Iterable[str], fix: str) -> list[Check]:
    return [warning(name, text, fix) for text in texts]


def _useless(declares: Matches, adopted: set[TaskNames]) -> Iterable[str]:
    for number, (rule, tasks) in enumerate(zip(declares.rules, declares.tasks, strict=True)):
        if tasks and adopted.isdisjoint(tasks):
            yield f"{rule_text(rule, number)} declares nothing: none of its tasks is adopted."


# --- for programs and for people ------------------------------------------------------------------


def survey_document(survey: Survey) -> dict[str, Any]:
    """Give the document of ``--output json``; its schema is ``schemas/adoption.json``."""
    problems = commands.checks_document(survey.problems)["checks"]
    return {"tasks": list(map(to_builtins, survey.rows)), "problems": problems}


def print_survey(found: Survey, file: IO[str]) -> None:
    """Print a line for each task, then the problems."""
    out = show.console(file)
    if found.rows:
        out.print(_table(found.rows))
    out.print(show.escape(_summary(found.rows)), soft_wrap=True)
    if found.problems:
        out.print()
        commands.print_checks(found.problems, file)


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("DAG", "task", "operator", "adoption", "declared"):
        table.add_column(title, overflow="fold")
    for row in rows:
        style = "green" if row.adopted else "yellow"
        table.add_row(
            *map(show.escape, (row.dag_id, row.task_id, row.operator)),
            f"[{style}]{show.escape(row.reason)}[/]",
            f"rule {row.declaration}" if row.declaration else "",
        )
    return table


def _summary(rows: Sequence[Row]) -> str:
    if not rows:
        return "There is no task of a Spark operator."
    adopted = sum(row.adopted for row in rows)
    return f"Of {len(rows)} tasks of Spark operators {adopted} are adopted."


# --- the command ----------------------------------------------------------------------------------


def show_adoption(args: argparse.Namespace) -> int:
    """Print which tasks are adopted, and problems with rules and DAG files.

    :return: 1 if rules or a DAG file cannot be read, else 0
    """
    with commands.logging_to_stderr():
        source = configuration("adopt", "declarations")
        adopt, declared = (resolution.value(name, source) for name in ("adopt", "declarations"))
        rules = Rules.of(args.adopt or adopt, declared)
        with commands.progress("Parsing DAG files", None) as done:
            parsed = parse_dags(args.dags_folder, done)
        if args.dag_id and args.dag_id not in {dag.dag_id for dag in parsed.dags}:
            commands.refuse(f"No DAG file that can be imported has a DAG {args.dag_id}.")
        every = survey(parsed.dags, rules)
        shown = Survey(
            [row for row in every.rows if args.dag_id in (None, row.dag_id)],
            [*rules.problems, *every.problems, *parsed.problems],
        )
    if args.output == "json":
        commands.say_json(survey_document(shown))
    else:
        print_survey(shown, sys.stdout)
        if adopt in ("", "off") and not args.adopt:
            commands.note(
                "Adoption is off. To see its effect: airflow sparklineage adoption --adopt all"
            )
    return 1 if any(check.status is Status.FAILED for check in shown.problems) else 0
