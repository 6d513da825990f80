"""Make the arguments by which a spark-submit in a user's own command reports its lineage.

A template gets the arguments from a macro (:mod:`airflow_provider_sparklineage.plugins.macros`)
while the task's fields are rendered. The listener is injected as it is for an operator's job. The
task does not merge the job's reports; ``airflow sparklineage collect`` merges them later.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from msgspec import field
from msgspec.structs import replace

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.operators.attempt import submit
from airflow_provider_sparklineage.operators.attempt.task_try import Try
from airflow_provider_sparklineage.operators.lineage_mixin import ARGUMENTS, LineageMixin
from airflow_provider_sparklineage.settings.connection import DEFAULT_CONN_ID
from airflow_provider_sparklineage.spark.submit import distribution
from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
from airflow_provider_sparklineage.spark.submit.submission import (
    Submission,
    named_scripts,
    read_command_line,
    shell_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.operators.attempt.submit import Capture
    from airflow_provider_sparklineage.spark.submit.submission import CommandLine

log = logger(__name__)

_DEFAULTS = "spark-defaults.conf"


class MacroCall(Frozen, frozen=True):
    """The arguments of one call of a macro.

    :param macro: name of the macro
    :param submission: arguments of spark-submit that the user gives to the macro
    :param master: ``--master`` of the spark-submit, if the command does not show it; else empty
    :param deploy_mode: ``--deploy-mode``, if the command does not show it; else empty
    :param elsewhere: whether the command runs on another machine, or in a container
    """

    macro: str
    submission: Submission = field(default_factory=Submission)
    master: str = ""
    deploy_mode: str = ""
    elsewhere: bool = False
    lineage_conn_id: str | None = None


class CommandArguments(Frozen, frozen=True):
    """The arguments that a macro gives to a spark-submit command.

    :param arguments: arguments for spark-submit, quoted for a shell
    :param properties_file: the properties file among these arguments, if this package wrote it
    :param spark_binary: the spark-submit that the command runs
    """

    arguments: str
    properties_file: Path | None = None
    spark_binary: str = "spark-submit"


class _Commands:
    """The macro calls of one try: equal calls get the same arguments, and all share one bundle.

    :param is_running: whether the task is running; if it is not, nothing is added to its commands
    """

    def __init__(self, context: Context, *, is_running: bool = True) -> None:
        self.context = context
        self._is_running = is_running
        self._task = context["task"]
        self._capture: Capture | None = None
        self._answers: list[tuple[MacroCall, CommandArguments]] = []

    def arguments(self, call: MacroCall) -> CommandArguments:
        for known, answer in self._answers:
            if known == call:
                return answer
        answer = self._answered(call)
        self._answers.append((call, answer))
        return answer

    def _answered(self, call: MacroCall) -> CommandArguments:
        answer = CommandArguments(shell_arguments(call.submission))
        if not self._is_running:
            return answer
        arguments = {name: getattr(LineageMixin, name) for name in ARGUMENTS}
        operator: Any = SimpleNamespace(
            **arguments | {"lineage_conn_id": call.lineage_conn_id or DEFAULT_CONN_ID},
            inlets=self._task.inlets,
            outlets=self._task.outlets,
            lineage_properties=call.submission.conf,
        )
        current = Try(operator)
        if not current.is_on or not current.is_sent():
            return answer

        def inject(capture: Capture) -> Capture:
            nonlocal answer
            capture, answer = self._injected(call, capture)
            return capture

        earlier = 0
        if self._capture is None:
            self._capture = current.begin(operator, self.context, inject, of_command=True)
        else:
            earlier = len(self._capture.bundle.manifest.degradations)
            self._capture, _ = submit.announced(inject(self._capture))
        if self._capture is not None:
            added = self._capture.bundle.manifest.degradations[earlier:]
            if problems := " ".join(d.message for d in added if d.code.needs_attention):
                log.warning("Spark lineage of this command will be incomplete. %s", problems)
        return answer

    def _injected(self, call: MacroCall, capture: Capture) -> tuple[Capture, CommandArguments]:
        """Make the arguments that a macro call gives, with the listener in them.

        The listener is left out if the command has arguments of the user's that would take the
        place of the listener's arguments. The changed capture then has the reason.
        """
        text = "\n".join(_texts(self._task))
        for _, answer in self._answers:  # our own arguments, in a field that is rendered already
            text = text.replace(answer.arguments, "") if answer.arguments else text
        if not call.elsewhere:
            text = "\n".join([text, *named_scripts(text)])
        shown = read_command_line(text, call.macro)
        submission = call.submission
        submission = replace(
            submission,
            application=submission.application or shown.application,
            env_vars=_environment(self._task),
        )
        target = Target(
            shown.binary or "spark-submit",
            call.master or shown.master,
            call.deploy_mode or shown.deploy_mode or None,
            is_command=True,
            is_elsewhere=call.elsewhere,
        )
        if shown.colliding:
            capture = submit.refused(capture, _collision(shown, call))
            capture, after = submit.protected(capture, submission, target)
        else:
            capture, after = submit.submittable(capture, submission, target, self.context)
        own, file = call.submission.properties_file, after.properties_file
        ours = Path(file) if file and file != own else None
        return capture, CommandArguments(shell_arguments(after), ours, target.spark_binary)

    def conf_dir(self, answer: CommandArguments) -> str:
        """Make a configuration folder for ``SPARK_CONF_DIR``; give its path.

        It has the user's files, but this package's properties file as ``spark-defaults.conf``.
        If nothing was added, or the folder cannot be made, give the user's own folder, or ``""`` if
        there is none.

        :param answer: the arguments that the same macro call has given to the command
        """
        env = distribution.environment(_environment(self._task))
        own = _own_conf_dir(answer.spark_binary, env)
        if answer.properties_file is None:
            return str(own or "")
        try:
            return str(_linked(own, answer.properties_file))
        except OSError as error:  # most often the user's folder cannot be read
            if self._capture is not None:
                self._capture = submit.refused(self._capture, error)
            log.warning("Spark lineage of this command will be incomplete. %s", error)
            return str(own or "")


_latest: _Commands | None = None


def arguments(context: Context, call: MacroCall) -> str:
    """Give the arguments for a spark-submit: the user's, and those that this package adds.

    The arguments are made once for a try, however often the task's fields are rendered. If the task
    is not running, as in ``airflow tasks render``, nothing is added to the user's arguments.

    :raise Exception: if lineage is impossible and ``[sparklineage] strict`` is on
    """
    return _commands(context).arguments(call).arguments


def conf_dir(context: Context, call: MacroCall) -> str:
    """Give a folder for ``SPARK_CONF_DIR``, with the properties that this package adds.

    If none are added, it is the user's own folder, or ``""`` if there is none.

    :raise Exception: if lineage is impossible and ``[sparklineage] strict`` is on
    """
    commands = _commands(context)
    return commands.conf_dir(commands.arguments(call))


def _commands(context: Context) -> _Commands:
    """Give the macro calls of the try that runs in this process.

    For a task that is not running, give new ones, which add nothing to the task's commands.
    """
    global _latest  # a worker runs one try in a process
    if getattr(context["ti"], "state", None) != "running":
        return _Commands(context, is_running=False)
    if _latest is None or _latest.context["ti"] is not context["ti"]:
        _latest = _Commands(context)
    return _latest


def _collision(shown: CommandLine, call: MacroCall) -> ListenerError:
    names = " and ".join(shown.colliding)
    problem = (
        f"The command has {names}, of which Spark takes one alone, and {call.macro}() would add "
        "another one."
    )
    fix = (
        "Leave it out of the command and give it to the macro, as in submit_args(jars='a.jar', "
        "py_files='b.zip', conf={'spark.extraListeners': 'C'})."
    )
    return ListenerError(problem, fix)


def _texts(task: Any) -> Iterator[str]:
    """Yield the texts in a task's template fields; some fields may be rendered already."""
    pending = [getattr(task, name, None) for name in task.template_fields]
    while pending:
        value = pending.pop(0)
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list | tuple):
            pending += value


def _environment(task: Any) -> dict[str, str]:
    """Give the variables in a task's ``env``, without those whose values are templates."""
    env = getattr(task, "env", None)
    if not isinstance(env, dict):
        return {}
    return {k: v for k, v in env.items() if isinstance(v, str) and "{{" not in v}


def _linked(own: Path | None, properties_file: Path) -> Path:
    """Make a folder with links to the files of the user's configuration folder; give its path.

    :param own: the user's configuration folder, if there is one
    :param properties_file: takes the place of the user's ``spark-defaults.conf``
    """
    folder = properties_file.parent / "conf"
    folder.mkdir(mode=0o700, exist_ok=True)
    files = {f.name: f.absolute() for f in own.iterdir()} if own and own.is_dir() else {}
    for name, file in {**files, _DEFAULTS: properties_file}.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(file)
    return folder


def _own_conf_dir(spark_binary: str, env: Mapping[str, str]) -> Path | None:
    if env.get("SPARK_CONF_DIR"):
        return Path(env["SPARK_CONF_DIR"])
    spark = distribution.find(spark_binary, env)
    return spark.home / "conf" if spark and spark.home else None
