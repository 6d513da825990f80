"""The codes of degradations: each has a meaning, a remedy, and a place on the page of limits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airflow_provider_sparklineage.cli.command_line import AIRFLOW_COMMANDS, COMMANDS
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.settings.options import OPTIONS

LIMITS = Path(__file__).parents[3] / "docs" / "limits.md"
OF_OPERATORS = {"reads=", "writes=", "execution_timeout", "listener_extensions"}
OF_OTHERS = {"sparklineage:", "ntpd -x"}
COMMANDS_BY_NAME = {command.name: command for command in (*COMMANDS, *AIRFLOW_COMMANDS)}


@pytest.mark.parametrize("code", DegradationCode)
def test_each_code_has_sentences_on_its_meaning_and_its_remedy(code):
    for text in (code.meaning, code.missing, code.remedy):
        assert re.fullmatch(r"[A-Z][^\n]{10,250}\.", text)
    assert len({code.meaning, code.missing, code.remedy}) == 3


def test_no_two_codes_have_the_same_meaning():
    assert len({code.meaning for code in DegradationCode}) == len(DegradationCode)


def flags(command):
    return {flag for one in COMMANDS_BY_NAME[command].arguments for flag in one.flags}


@pytest.mark.parametrize("code", DegradationCode)
def test_a_remedy_names_options_and_commands_that_there_are(code):
    options = {option.name for option in OPTIONS} | OF_OPERATORS | OF_OTHERS | flags("collect")
    for name in re.findall("`([^`]+)`", code.remedy):
        if command := re.match("(?:airflow )?sparklineage ([a-z-]+)", name):
            assert {*re.findall("--[a-z-]+", name)} <= flags(command[1])
        else:
            assert name.partition(" = ")[0] in options


def test_the_page_of_limits_has_every_code_and_no_other():
    page = LIMITS.read_text()
    rows = re.findall(r"^\|.*\|([^|]*)\|$", page, re.MULTILINE)
    codes = {code for row in rows for code in re.findall("`([a-z]+_[a-z_]+)`", row)}
    assert codes - {"collect_timeout"} <= set(DegradationCode)
    assert [code for code in DegradationCode if f"`{code}`" not in page] == []
