"""What commands print, whatever it quotes: no text of others controls a terminal."""

import ast
import io
import json
import os
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.model.texts import CONTROL_CHARACTERS
from tests.conftest import golden

STAGING = str(golden("staging_chain"))
ORDERS = "\x1b]0;title\x07\x1b[2J\x9b2K\u202e\u2066\u061c\u200e"
"""Sets a title, clears the screen, deletes a line, and turns text around."""


@pytest.fixture
def stored(run, tmp_path):
    """Write a merged event, with something changed in it."""

    def stored(change=lambda _event: None):
        event = json.loads(run("merge", STAGING).out)
        change(event)
        file = tmp_path / "lineage.json"
        file.write_text(json.dumps(event))
        return str(file)

    return stored


def rename(event):
    """Give every text of an event such characters."""
    text = json.dumps(event).replace("amount", f"amount{json.dumps(ORDERS)[1:-1]}")
    renamed = json.loads(text.replace('DIRECT"', f'DIRECT{json.dumps(ORDERS)[1:-1]}"'))
    event.clear()
    event.update(renamed)
    event["job"]["name"] += ORDERS


@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        ("explain", "--run"),
        ("impact", "orders", "--column", f"amount{ORDERS}", "--events"),
        ("trace", "revenue", "--column", "revenue", "--json", "--events"),
        ("trace", f"nothing{ORDERS}", "--events"),
        ("trace", "revenue", "--column", f"nothing{ORDERS}", "--events"),
        ("explain", "--json", "--run"),
        ("merge",),
    ],
    ids=" ".join,
)
def test_no_command_passes_control_characters(run, stored, command):
    done = run(*command, stored(rename))
    printed = done.out + done.err
    assert printed
    assert CONTROL_CHARACTERS.findall(printed.replace("\n", "")) == []


def test_json_has_the_same_texts_however_they_are_escaped(run, stored):
    column = f"amount{ORDERS}"
    done = run("trace", "revenue", "--column", "revenue", "--json", "--events", stored(rename))
    assert column in {json.loads(line)["column"] for line in done.out.splitlines()}


@pytest.mark.parametrize(
    "arguments",
    [("show", "x", f"--{ORDERS}"), (ORDERS,), ("explain", "--logical-date")],
    ids=["an unknown option", "an unknown command", "no value"],
)
def test_wrong_arguments_are_quoted_without_control_characters(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert CONTROL_CHARACTERS.findall(capsys.readouterr().err.replace("\n", "")) == []


def test_an_array_has_one_document_a_line_without_control_characters(capsys):
    documents = [{"name": ORDERS}, {"name": "a\nb"}]
    commands.say_json_array(documents)
    printed = capsys.readouterr().out
    assert json.loads(printed) == documents
    assert CONTROL_CHARACTERS.findall(printed.replace("\n", "")) == []
    assert len(printed.splitlines()) == len(documents) + 2


def test_an_array_of_nothing_is_one():
    with redirect_stdout(io.StringIO()) as printed:
        commands.say_json_array(())
    assert json.loads(printed.getvalue()) == []


def test_an_error_is_one_line_without_control_characters(run):
    done = run("show", f"/nowhere/a\nb{ORDERS}")
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert r"a\nb\x1b]0;title\x07" in done.err


def test_everything_leaves_commands_in_one_place():
    """A module that prints by itself would have to escape by itself."""
    folder = Path(cli.__file__).parent
    printing = {
        str(path.relative_to(folder))
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "sys.stdout.write")
    }
    # A path for scripts (of a jar, a page) and a schema of this package are printed as they are.
    assert printing == {"commands.py", "listener.py", "events.py", "schemas.py"}


def test_a_defect_is_one_line_that_says_how_to_find_it(run, monkeypatch):
    def broken(*_args, **_kwargs):
        return {}[f"nothing{ORDERS}"]

    monkeypatch.setattr("airflow_provider_sparklineage.cli.events.events_of", broken)
    monkeypatch.delenv(cli.TRACEBACK, raising=False)
    done = run("show", STAGING)
    assert (done.code, done.out) == (1, "")
    [line] = done.err.splitlines()
    assert line.startswith("sparklineage: This is a defect in sparklineage (KeyError: ")
    assert "SPARKLINEAGE_TRACEBACK=1" in line
    assert CONTROL_CHARACTERS.findall(line) == []


def test_where_a_defect_is_can_be_seen(run, monkeypatch):
    def broken(*_args, **_kwargs):
        return {}["nothing"]

    monkeypatch.setattr("airflow_provider_sparklineage.cli.events.events_of", broken)
    monkeypatch.setenv(cli.TRACEBACK, "1")
    with pytest.raises(KeyError):
        run("show", STAGING)


@pytest.mark.parametrize("command", [("show",), ("merge",)], ids=" ".join)
def test_a_terminal_that_knows_ascii_alone_gets_all_of_the_answer(monkeypatch, stored, command):
    file = stored(lambda event: event["inputs"][0].update(name="/lake/żółw"))
    events = golden("staging_chain").read_text().replace("/lake/orders", "/lake/żółw")
    Path(f"{file}.ndjson").write_text(events)
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    assert cli.main((*command, f"{file}.ndjson")) == 0
    out.flush()
    assert rb"/lake/\u017c\xf3\u0142w" in out.buffer.getvalue() or (
        rb"/lake/\u017c\u00f3\u0142w" in out.buffer.getvalue()
    )


# --- files that are not what they should be -------------------------------------------------------


DAMAGE = {
    "a column without a name": (
        lambda e: e["outputs"][0]["facets"]["schema"]["fields"][0].pop("name"),
        "Object missing required field `name` - at `$.outputs[0].facets.schema.fields[0]`",
    ),
    "a facet of another shape": (
        lambda e: e["outputs"][0]["facets"].update(columnLineage=[]),
        "Expected `object | null`, got `array` - at `$.outputs[0].facets.columnLineage`",
    ),
    "a condition of which a side is missing": (
        lambda e: e["inputs"][0].update(
            inputFacets={"subset": {"inputCondition": {"type": "binary", "left": {}}}}
        ),
        "A condition of the type binary is incomplete - at "
        "`$.inputs[0].inputFacets.subset.inputCondition`",
    ),
    "no datasets": (lambda e: e.update(inputs=5), "its inputs are no list of datasets"),
}


@pytest.mark.parametrize("command", [("show",), ("explain", "--run")], ids=" ".join)
@pytest.mark.parametrize(("change", "why"), DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_event_is_refused_with_file_line_and_reason(run, stored, command, change, why):
    file = stored(change)
    done = run(*command, file)
    assert (done.code, done.out) == (2, "")
    assert f"{file}:1: The stored lineage is damaged: {why}." in done.err


def test_an_event_without_its_type_is_explained(run, stored):
    done = run("explain", "--json", "--run", stored(lambda event: event.pop("eventType")))
    assert done.code == 0
    assert json.loads(done.out)[0]["outcome"] == ""


def test_a_line_that_cannot_be_read_is_noted_where_others_can(run, stored):
    file = stored()
    with Path(file).open("ab") as stream:
        stream.write(b'\n{"run": \xff}\n\n{"any": "json"}\n')
    done = run("show", file)
    assert done.code == 0
    assert "Columns of revenue" in done.out
    [note] = done.err.splitlines()
    assert note.startswith(f"note: left out: {file}:2: ")


@pytest.mark.parametrize("command", [("show",), ("merge",), ("explain", "--run")], ids=" ".join)
def test_a_pipe_is_refused_and_not_waited_for(run, tmp_path, command):
    for name in ("events.ndjson", "manifest.json"):
        os.mkfifo(tmp_path / name)
    for path in (tmp_path / "events.ndjson", tmp_path):
        done = run(*command, str(path))
        assert done.code == 2
        assert "it is no regular file" in done.err


def test_manifests_that_cannot_be_read_are_named_with_the_reason(run, tmp_path):
    manifest = tmp_path / "manifest.json"
    texts = (
        b"\xff",
        b'{"application_run_id":' + b"[" * 10_000,
        b'{"application_run_id":"r","partitioning":[{"dataset":5}]}',
        b'{"application_run_id":"r","intermediate_datasets":"sometimes"}',
        b'{"application_run_id":"r","outcome":"perhaps"}',
    )
    for text in texts:
        manifest.write_bytes(text)
        done = run("show", str(tmp_path))
        assert done.code == 2
        assert done.err.startswith(f"sparklineage: {manifest} is no manifest of a capture bundle: ")
        assert len(done.err.splitlines()) == 1


def test_texts_are_escaped_as_python_and_json_do(capsys):
    commands.say("a\x1bb")
    commands.note("a\nb")
    commands.say_json({"a\u202e": "\x9b\ud800"})
    printed = capsys.readouterr()
    assert printed.out == 'a\\x1bb\n{\n  "a\\u202e": "\\u009b\\ud800"\n}\n'
    assert printed.err == "a\\nb\n"
