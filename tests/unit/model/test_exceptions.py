"""Errors explain what is wrong and what to do, and quote no credentials."""

from __future__ import annotations

import pickle

import pytest

from airflow_provider_sparklineage.model import exceptions
from airflow_provider_sparklineage.model.exceptions import SettingsError, SparkLineageError

ERRORS = [
    error
    for error in vars(exceptions).values()
    if isinstance(error, type) and issubclass(error, SparkLineageError)
]


def test_the_text_of_an_error_is_its_problem_and_its_fix():
    error = SettingsError("x is 'y'.", "It must be z.")
    assert (error.problem, error.fix, str(error)) == (
        "x is 'y'.",
        "It must be z.",
        "x is 'y'. It must be z.",
    )


def test_of_an_error_without_a_fix_the_text_is_its_problem():
    assert str(SettingsError("It cannot be read.")) == "It cannot be read."


def test_an_error_survives_the_way_to_another_process():
    error = pickle.loads(pickle.dumps(SettingsError("It is old.", "Renew it.")))
    assert (type(error), error.problem, error.fix) == (SettingsError, "It is old.", "Renew it.")


def test_an_error_shows_no_credentials_whatever_it_quotes():
    error = SettingsError("https://u:p@ss@h is away.", "Write https://h?password=s otherwise.")
    assert str(error) == "https://h is away. Write https://h otherwise."


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_the_tree_of_the_docstring_has_every_error(error):
    assert f" {error.__name__} " in str(exceptions.__doc__).replace("\n", " ")
