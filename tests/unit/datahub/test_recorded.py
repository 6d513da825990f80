"""What DataHub is asked to store of every recorded application."""

from __future__ import annotations

import pytest

from tests.conftest import RECORDED
from tests.unit.datahub.sdk import checked
from tests.write_datahub import converted


@pytest.mark.parametrize(("spark", "case"), RECORDED, ids=lambda part: part)
def test_the_sdk_takes_what_is_stored_of_an_application(spark, case):
    assert checked(converted(case, spark))
