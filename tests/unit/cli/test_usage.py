"""The usage of the commands: help, versions, and errors that name what to type instead."""

from __future__ import annotations

import re
import shlex
import shutil
from argparse import Namespace
from importlib import metadata
from pathlib import Path

import pytest

from airflow_provider_sparklineage.cli import parsing
from airflow_provider_sparklineage.cli.command_line import AIRFLOW_COMMANDS, COMMANDS, SECTIONS
from airflow_provider_sparklineage.cli.commands import Group
from tests.conftest import golden

HISTORY = Path(__file__).parents[2] / "golden" / "history"
EXAMPLE_RUNS = [str(HISTORY / f"flights_{name}.ndjson.gz") for name in ("month", "rewritten")]


def flat(commands):
    for command in commands:
        yield from command.commands if isinstance(command, Group) else [command]


@pytest.fixture
def refused(run, capsys):
    """Run a command that ends with an error of usage; give the lines that it prints."""

    def refused(*argv):
        try:
            code, err = (done := run(*argv)).code, done.err
        except SystemExit as error:
            code, err = error.code, capsys.readouterr().err
        assert code == 2
        return err.splitlines()

    return refused


# --- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("commands", [COMMANDS, AIRFLOW_COMMANDS], ids=["own", "of Airflow"])
def test_each_command_is_in_one_section(commands):
    listed = [one.name for _, section in parsing.sections(commands) for one in section]
    assert sorted(listed) == sorted(command.name for command in commands)


def test_each_name_of_a_section_is_a_command():
    names = {name for section in SECTIONS.values() for name in section}
    assert names == {command.name for command in (*COMMANDS, *AIRFLOW_COMMANDS)}


@pytest.mark.parametrize(("argv", "code"), [((), 2), (("--help",), 0)], ids=["none", "--help"])
def test_the_help_has_the_commands_in_sections(run, capsys, monkeypatch, argv, code):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        run(*argv)
    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == code
    assert [line for line in lines if line.rstrip(":") in SECTIONS] == [
        f"{one}:" for one in SECTIONS
    ]
    assert max(map(len, lines)) <= 80
    words = [line.split()[0] for line in lines if re.match("  [a-z]", line)]
    assert words == [name for of in SECTIONS.values() for name in of if name in names(COMMANDS)]


def names(commands):
    return {command.name for command in commands}


def test_a_group_without_its_command_has_its_help(run, capsys):
    with pytest.raises(SystemExit, match="2"):
        run("history")
    assert "build" in capsys.readouterr().out


def test_the_version_is_printed(run, capsys):
    with pytest.raises(SystemExit, match="0"):
        run("--version")
    version = metadata.version("airflow-provider-sparklineage")
    assert capsys.readouterr().out == f"sparklineage {version}\n"


@pytest.mark.parametrize("command", [*flat(COMMANDS)], ids=lambda one: one.name)
def test_the_help_of_a_command_ends_with_examples_and_exit_codes(run, capsys, command):
    words = command.examples[0].split()
    with pytest.raises(SystemExit, match="0"):
        run(*words[: 2 if words[0] == "history" else 1], "--help")
    _, _, end = capsys.readouterr().out.partition("\nexamples:\n")
    assert 1 <= len(command.examples) <= 3
    assert end.startswith("".join(f"  sparklineage {one}\n" for one in command.examples))
    assert [line.split()[0] for line in end.splitlines()[-4:]] == ["0", "1", "2", "130"]


def test_no_help_has_what_airflow_takes_for_markup():
    every = [*flat(COMMANDS), *flat(AIRFLOW_COMMANDS)]
    texts = {one.help for one in every} | {
        a.settings["help"] for one in every for a in one.arguments
    }
    assert [text for text in texts if re.search(r"\[[a-z#/@]", text)] == []


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Make the place where the examples of the help are typed, with the runs of the example DAG."""
    folder = tmp_path_factory.mktemp("example")
    shutil.copy(golden("staging_chain"), folder / "events.ndjson")
    (folder / "archive").mkdir()
    for file in EXAMPLE_RUNS:
        shutil.copy(file, folder / "archive")
    arguments = parsing.parse(["history", "build", *EXAMPLE_RUNS, f"--store={folder}/history"])
    assert arguments.command.run(arguments) == 0
    return folder


ELSEWHERE = {"demo", "doctor", "fetch-listener"}  # of this machine's Spark, and tested with it
EXAMPLES = [e for c in flat(COMMANDS) if c.name not in ELSEWHERE for e in c.examples]


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_help_work_as_typed(run, example, monkeypatch, text):
    monkeypatch.chdir(example)
    for name in ("history", "archive"):
        url = (example / name).as_uri()
        monkeypatch.setenv(f"AIRFLOW__SPARKLINEAGE__{name.upper()}_URL", url)
    done = run(*shlex.split(text))
    assert done.code == 0, done.err
    assert done.out
    assert not re.search(r"(?m)^(Nothing is known|There is nothing|sparklineage:)", done.out)


@pytest.mark.parametrize("command", [*flat(AIRFLOW_COMMANDS)], ids=lambda one: one.name)
def test_the_examples_of_airflows_help_can_be_parsed(command):
    for text in command.examples:
        words = shlex.split(text)[2 if command.examples[0].startswith("history") else 1 :]
        args = parsing.parser_of(command, parsing.AIRFLOW_PROG).parse_args(words)
        assert command.misuse(args) == ""


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "usage", "error"),
    [
        (("stal",), "sparklineage", "argument COMMAND: There is no 'stal'. Did you mean stale?"),
        (("--verison",), "sparklineage", "unrecognized arguments: --verison. Did you mean "
         "--version?"),
        (("history", "bild"), "sparklineage history", "argument COMMAND: There is no 'bild'. Did "
         "you mean build?"),
        (("stale", "--unjugded"), "sparklineage stale", "unrecognized arguments: --unjugded. Did "
         "you mean --unjudged?"),
        (("trace", "x", "--partion=dt=1"), "sparklineage trace", "unrecognized arguments: "
         "--partion=dt=1. Did you mean --partition?"),
        (("gaps", "x", "y"), "sparklineage gaps", "unrecognized arguments: y"),
        (("merge", "x", "--format", "datahob"), "sparklineage merge", "argument --format: There is "
         "no 'datahob'. Did you mean datahub?"),
        (("merge", "x", "--format", "csv"), "sparklineage merge", "argument --format: There is "
         "no 'csv'. Choose from openlineage, datahub."),
        (("trace", "x", "--depth", "-1"), "sparklineage trace", "argument --depth: '-1' is no "
         "whole number of at least 0"),
        (("trace",), "sparklineage trace", "the following arguments are required: DATASET"),
        (("stale", "--yes"), "sparklineage stale", "--yes needs --clear."),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)  # fmt: skip
def test_an_error_of_usage_has_the_usage_of_the_command_at_hand(refused, argv, usage, error):
    first, *_, last = refused(*argv)
    assert re.match(rf"usage: {usage} \[", first)
    assert last == f"{usage}: error: {error}"


def test_a_wrong_word_controls_no_terminal(refused):
    assert "\x1b" not in "".join(refused("stale", "--\x1b[2J"))


IGNORED = [
    ("merge x --transport {}", "--transport needs --format datahub."),
    ("merge x --transport {} --format openlineage", "--transport needs --format datahub."),
    ("history build x --delivered", "Give SOURCE or --delivered, not both."),
    ("trace x --direct", "--direct needs --column."),
    ("trace x --store y --events z", "Give --store or --events, not both."),
    ("trace x --unjudged --all", "Give --all or --unjudged, not both."),
    ("impact x --yes", "--yes needs --clear."),
    ("impact x --yes --plan", "--yes needs --clear."),
    ("impact x --clear --json", "Give --json or --clear, not both."),
    ("impact x --unjudged --plan", "Give --plan or --unjudged, not both."),
    ("impact x --unjudged --clear", "Give --clear or --unjudged, not both."),
    ("impact x --store y --events z", "Give --store or --events, not both."),
    ("stale --yes", "--yes needs --clear."),
    ("stale --clear --json", "Give --json or --clear, not both."),
    ("stale --clear --strict", "Give --clear or --strict, not both."),
    ("stale --unjudged --plan", "Give --plan or --unjudged, not both."),
    ("stale --unjudged --ignore x", "Give --ignore or --unjudged, not both."),
    ("stale --unjudged --all", "Give --all or --unjudged, not both."),
    ("gaps x --unjudged --all", "Give --all or --unjudged, not both."),
    ("explain x --run y", "Give TEMPLATE or --run, not both."),
    ("explain --run y --logical-date 2024-05-06", "Give --logical-date or --run, not both."),
    ("explain --run y --partition-key z", "Give --partition-key or --run, not both."),
    ("explain --run y --partition-date z", "Give --partition-date or --run, not both."),
    ("explain --run y --rules z", "Give --rules or --run, not both."),
    ("explain x --data-interval-end y", "--data-interval-end needs --data-interval-start."),
    ("explain x --data-interval-start y", "--data-interval-start needs --data-interval-end."),
    ("explain x --data-interval-start y --data-interval-end z", "--data-interval-start needs "
     "--logical-date."),
    ("fetch-listener --from x --repositories y", "Give --from or --repositories, not both."),
]  # fmt: skip
IGNORED_OF_AIRFLOW = [
    ("explain dag task --run y --map-index 1", "Give --map-index or --run, not both."),
    ("collect --again", "--again needs RUN."),
    ("doctor --conf spark.x=1", "--conf needs --spark-submit."),
    ("doctor dag", "DAG_ID needs TASK_ID."),
    ("doctor dag task --conn-id x", "Give DAG_ID or --conn-id, not both."),
    ("doctor dag task --spark-conn-id x", "Give DAG_ID or --spark-conn-id, not both."),
]


@pytest.mark.parametrize(("line", "error"), IGNORED, ids=[line for line, _ in IGNORED])
def test_an_option_that_would_be_ignored_is_an_error_of_usage(refused, line, error):
    first, *_, last = refused(*line.split())
    command = "history build" if line.startswith("history") else line.split()[0]
    assert first.startswith(f"usage: sparklineage {command} ")
    assert last == f"sparklineage {command}: error: {error}"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        *((line, error) for line, error in IGNORED_OF_AIRFLOW),
        ("stale --yes", "--yes needs --clear."),
    ],
)
def test_so_it_is_under_airflow(capsys, line, error):
    name, *words = line.split()
    [command] = [one for one in AIRFLOW_COMMANDS if one.name == name]
    parser = parsing.parser_of(command, parsing.AIRFLOW_PROG)
    assert parsing.is_misused(command, parser.parse_args(words), parser)
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith(f"usage: airflow sparklineage {name} ")
    assert last == f"airflow sparklineage {name}: error: {error}"


def test_each_option_that_another_needs_or_excludes_is_one_of_the_commands():
    every = {a.flags[0] for c in (*flat(COMMANDS), *flat(AIRFLOW_COMMANDS)) for a in c.arguments}
    named = {
        need.partition(" ")[0]
        for command in (*flat(COMMANDS), *flat(AIRFLOW_COMMANDS))
        for argument in command.arguments
        for need in (*argument.needs, *argument.excludes)
    }
    assert named <= every


def test_each_rule_of_an_option_has_a_line_above():
    """So that a new rule gets its example."""
    ruled = {
        (command.name, argument.flags[0])
        for command in (*flat(COMMANDS), *flat(AIRFLOW_COMMANDS))
        for argument in command.arguments
        if argument.needs or {*argument.excludes} & {one.flags[0] for one in command.arguments}
    }
    lines = [*IGNORED, *IGNORED_OF_AIRFLOW]
    tried = {
        (line.removeprefix("history ").split()[0], name.lower())
        for line, error in lines
        for name in re.findall("--[a-z-]+|[A-Z_]+ID", error)
    }
    assert ruled <= tried


def test_a_number_of_zero_is_given():
    [command] = [one for one in COMMANDS if one.name == "trace"]
    [depth] = [one for one in command.arguments if one.flags == ("--depth",)]
    assert depth.value(Namespace(depth=0)) == 0


@pytest.mark.parametrize("command", ["show", "merge"])
def test_an_application_is_not_chosen_where_there_is_one(run, tmp_path, monkeypatch, command):
    merged = tmp_path / "merged.json"
    merged.write_text(run("merge", str(golden("staging_chain"))).out)
    if command == "show":
        done = run("show", str(merged), "--application", "x")
        assert done.err.endswith("The events are merged already. Leave out --application.\n")
        assert done.code == 2
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    done = run(command, str(bundle), "--application", "x")
    assert done.err.endswith("one application. Leave out --application.\n")
    assert (done.code, done.out) == (2, "")
