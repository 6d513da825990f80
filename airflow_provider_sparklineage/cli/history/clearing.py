"""``--clear``: runs the task instances of a plan again, in the order in which data flows.

Airflow starts whatever is cleared at once, in any number of DAGs. So one wave of the plan is
cleared, and the next one when all of it has succeeded: else a task would read what the one before
it has not written yet. What cannot be cleared is left out, and a wave with a failure is the last.
"""

from __future__ import annotations

import sys
import time
from itertools import groupby
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.commands import logging_to_stderr, note, progress, say
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_provider_sparklineage.cli.history.task_instances import Key, TaskInstances
    from airflow_provider_sparklineage.history.queries.answers import Step

_PAUSE_S = 2.0
_HOW_TO_GO_ON = (
    "Have that succeed in Airflow first. What comes after it is stale then and can be cleared: "
    "sparklineage history build, then sparklineage stale --clear"
)
_NO_AIRFLOW = "There is no Airflow here that could run anything again."


def clear(steps: Sequence[Step], *, yes: bool) -> int:
    """Ask, and run what a plan lists again; return the exit code.

    :param steps: of the plan, in their order
    :param yes: whether nobody is to be asked
    :raise UnusableInputError: if there is no Airflow, or nobody who could be asked
    """
    if not steps:
        say("There is nothing to clear.")
        return 0
    if not yes and not sys.stdin.isatty():
        problem = "Nobody can be asked here whether to clear."
        raise UnusableInputError(problem, "--yes clears without asking.")
    with logging_to_stderr():
        try:
            from airflow_provider_sparklineage.cli.history.task_instances import TaskInstances
        except ImportError:
            fix = "Run it where Airflow has its database: airflow sparklineage …"
            raise UnusableInputError(_NO_AIRFLOW, fix) from None
        waves, left_out = possible(steps, TaskInstances())
    count = sum(map(len, waves))
    if not count or not (yes or _is_confirmed(count)):
        say("Nothing was cleared.")
        return 1
    with logging_to_stderr():
        return max(run(waves, TaskInstances()), int(left_out))


def possible(steps: Sequence[Step], runner: TaskInstances) -> tuple[list[list[Key]], bool]:
    """Give the waves of what can be cleared, and whether anything has to be left out."""
    obstacles = runner.obstacles({_key(step): step.ended for step in steps})
    for key, why in obstacles.items():
        note(f"{key} is left out. {why}")
    waves = [
        [key for step in wave if (key := _key(step)) not in obstacles]
        for _, wave in groupby(steps, key=lambda step: step.wave)
    ]
    return [wave for wave in waves if wave], bool(obstacles)


def _key(step: Step) -> Key:
    from airflow_provider_sparklineage.cli.history.task_instances import Key

    return Key(step.dag_id, step.task_id, step.dag_run_id, step.map_index)


def _is_confirmed(count: int) -> bool:
    question = "Clear this task instance?" if count == 1 else f"Clear {count} task instances?"
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        return False


def run(
    waves: Sequence[Sequence[Key]],
    runner: TaskInstances,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Clear wave after wave; return 0 if all of it has succeeded, else 1."""
    for number, wave in enumerate(waves, 1):
        runner.clear(wave)
        for key in wave:
            note(f"cleared  {key}")
        try:
            ended = _wait(wave, runner, pause, f"Wave {number} of {len(waves)} runs")
        except KeyboardInterrupt:
            note("What was cleared goes on in Airflow.")
            ended = runner.states(wave)
        failed = {key: ended.get(key, "not at its end") for key in wave}
        failed = {key: state for key, state in failed.items() if state != "success"}
        for key, state in failed.items():
            note(f"{state}  {key}")
        if failed:
            return _stopped([key for later in waves[number:] for key in later])
    note("All have succeeded. Bring the history up to date: sparklineage history build")
    return 0


def _wait(
    wave: Sequence[Key], runner: TaskInstances, pause: Callable[[float], None], what: str
) -> Mapping[Key, str]:
    with progress(what, len(wave)) as reached:
        while len(ended := runner.states(wave)) < len(wave):
            reached(len(ended))
            pause(_PAUSE_S)
    return ended


def _stopped(later: Sequence[Key]) -> int:
    for key in later:
        note(f"not cleared, as it comes after  {key}")
    note(_HOW_TO_GO_ON)
    return 1
