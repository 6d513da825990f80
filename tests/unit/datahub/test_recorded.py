"""What DataHub is asked to store of every recorded application, as it was when somebody looked."""

from __future__ import annotations

import pytest

from tests.conftest import OF_ONE_SPARK
from tests.unit.datahub.sdk import checked
from tests.write_datahub import CASES, FOLDER, converted, text

AGAIN = "if it is right: python -m tests.write_datahub"


@pytest.mark.parametrize("case", CASES)
def test_what_is_stored_of_an_application_is_what_it_was(case):
    wanted = (FOLDER / f"{case}.ndjson").read_text(encoding="utf-8")
    assert text(converted(case)).splitlines() == wanted.splitlines(), AGAIN


def test_there_is_a_file_of_each_application_and_no_other():
    assert sorted(file.stem for file in FOLDER.iterdir()) == CASES


@pytest.mark.parametrize(("spark", "case"), OF_ONE_SPARK, ids=lambda part: part)
def test_the_sdk_takes_what_is_stored_of_an_application(spark, case):
    assert checked(converted(case, spark))
