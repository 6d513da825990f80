"""``--clear``: Airflow runs the task instances of a plan again, one wave after the other.

If many task instances are cleared, in any DAGs, Airflow starts all of them at once. So only one
wave of the plan is cleared, and the next wave only when the whole wave before has succeeded: else a
task would read partitions that the task before it has not written yet. Task instances that cannot
be cleared are left out. After a wave with a failure, no other wave is cleared.

The scheduler closes a DAG run some time after its last task instance has ended. A task instance
that is cleared at that moment would be *stranded*: its DAG run is closed, and nobody starts it. So
a wave waits until DAG runs that are about to be closed are closed, and a task instance that is
stranded nevertheless is cleared once more.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from itertools import chain, groupby
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.model.texts import some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from airflow_provider_sparklineage.cli.history.task_instances import Key, TaskInstances
    from airflow_provider_sparklineage.history.queries.answers import Plan, Step


_PAUSE_S = 2.0
_LOOKS = 30
"""Looks at the states between two lines about the task instances that are waited for: a minute."""
_MOST_NAMED = 3
_MOST_CLEARED = 3
"""How often a task instance is cleared: a stranded one is cleared again."""
_HOW_TO_GO_ON = (
    "Have that succeed in Airflow first. The runs after it are stale then and can be cleared: "
    "sparklineage history build, then sparklineage stale --clear"
)
_NO_AIRFLOW = "There is no Airflow here that could run anything again."
_INCOMPLETE = "The plan does not run all of these again: it lacks {}. Nothing was cleared."
_REPORT = "Please report this, with the output of --plan --json."


def clear(plan: Plan, runs: Iterable[str], *, yes: bool) -> int:
    """Ask for consent, and let Airflow run the steps of a plan again; return the exit code.

    :param runs: ids of the runs whose versions the answer lists
    :param yes: whether to clear without asking
    :raise UnusableInputError: if the plan lacks one of these runs, there is no Airflow, or no
        terminal on which to ask
    """
    if missing := plan.without(runs):
        commands.refuse(_INCOMPLETE.format(some(sorted(missing), _MOST_NAMED)), _REPORT)
    if not plan.steps:
        commands.say("There is nothing to clear.")
        return 0
    if not yes and not sys.stdin.isatty():
        commands.refuse(
            "Nobody can be asked here whether to clear.", "--yes clears without asking."
        )
    with commands.logging_to_stderr():
        try:
            from airflow_provider_sparklineage.cli.history.task_instances import TaskInstances
        except ImportError:
            fix = "Run it where Airflow has its database: airflow sparklineage …"
            commands.refuse(_NO_AIRFLOW, fix)
        waves, left_out = possible(plan.steps, TaskInstances())
    count = sum(map(len, waves))
    if not count or not (yes or _is_confirmed(count)):
        commands.say("Nothing was cleared.")
        return 1
    with commands.logging_to_stderr():
        return max(run(waves, TaskInstances()), int(left_out))


def possible(steps: Sequence[Step], runner: TaskInstances) -> tuple[list[list[Key]], bool]:
    """Give the task instances of a plan that can be cleared, in waves.

    Those that cannot be cleared are left out, and the reason for each is printed to stderr.

    :param steps: the steps of the plan, in their order
    :param runner: the task instances in Airflow's database
    :return: the waves (groups that are cleared together, one wave after the other), and whether any
        task instance was left out
    """
    namespace = runner.namespace
    own = [step for step in steps if step.namespace in ("", namespace)]
    for step in steps:
        if step.namespace not in ("", namespace):
            commands.note(f"{_key(step)} is left out. {_of_another(step, namespace)}")
    obstacles = runner.obstacles({_key(step): step.ended for step in own})
    for key, why in obstacles.items():
        commands.note(f"{key} is left out. {why}")
    waves = [
        [key for step in wave if (key := _key(step)) not in obstacles]
        for _, wave in groupby(own, key=lambda step: step.wave)
    ]
    return [wave for wave in waves if wave], bool(obstacles) or len(own) < len(steps)


def _of_another(step: Step, own: str) -> str:
    return (
        f"It ran in an Airflow whose [openlineage] namespace is {step.namespace!r}; "
        f"here it is {own!r}. Clear it there"
    )


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
    """Clear the task instances wave by wave, and wait until those of a wave have ended.

    After a wave with a failure, no other wave is cleared. At the end, each task instance that was
    cleared is printed with its state.

    :param waves: groups of task instances; the task instances of a group are cleared together
    :param runner: the task instances in Airflow's database
    :param pause: a function that waits for a number of seconds, before states are looked up again
    :return: 0 if all task instances have succeeded, else 1
    """
    ended: dict[Key, str] = {}
    for number, wave in enumerate(waves, 1):
        ended |= dict.fromkeys(wave, "not cleared")
        try:
            _wait_until_closed(wave, runner, pause)
            runner.clear(wave)
            for key in wave:
                commands.note(f"cleared  {key}")
            ended |= dict.fromkeys(wave, "not at its end")
            title = f"Wave {number} of {len(waves)} runs"
            for states in _until_ended(wave, runner, pause, title):
                ended |= states
        except KeyboardInterrupt:
            commands.note("The cleared task instances go on in Airflow.")
        if any(ended[key] != "success" for key in wave):
            _note_states(ended)
            for key in chain.from_iterable(waves[number:]):
                commands.note(f"not cleared, as it comes after  {key}")
            commands.note(_HOW_TO_GO_ON)
            return 1
    _note_states(ended)
    commands.note("All have succeeded. Bring the history up to date: sparklineage history build")
    return 0


def _note_states(states: dict[Key, str]) -> None:
    for key, state in states.items():
        commands.note(f"{state}  {key}")


def _wait_until_closed(
    wave: Sequence[Key], runner: TaskInstances, pause: Callable[[float], None]
) -> None:
    """Wait while DAG runs of a wave are about to be closed by the scheduler."""
    looks = 0
    while closing := runner.closing(wave):
        if looks % _LOOKS == 0:
            names = some(sorted(closing), _MOST_NAMED)
            commands.note(f"Waiting until Airflow's scheduler has closed the DAG runs {names}")
        looks += 1
        pause(_PAUSE_S)


def _until_ended(
    wave: Sequence[Key], runner: TaskInstances, pause: Callable[[float], None], title: str
) -> Iterator[dict[Key, str]]:
    """Yield the states of the task instances that have ended, until all have.

    A stranded task instance is cleared again; the state of one that is stranded again and again is
    final.
    """
    cleared = Counter(wave)
    looks = 0
    with commands.progress(title, len(wave)) as reached:
        while True:
            states = dict(runner.states(wave))
            stranded = [
                key
                for key, state in states.items()
                if state == runner.STRANDED and cleared[key] < _MOST_CLEARED
            ]
            if stranded:
                runner.clear(stranded)
                cleared.update(stranded)
                for key in stranded:
                    commands.note(f"cleared again, as Airflow had just closed its DAG run  {key}")
                    del states[key]
            yield states
            if len(states) == len(wave):
                return
            reached(len(states))
            looks += 1
            if looks % _LOOKS == 0:
                waiting = [str(key) for key in wave if key not in states]
                commands.note(f"Waiting for {some(waiting, _MOST_NAMED)}")
            pause(_PAUSE_S)
