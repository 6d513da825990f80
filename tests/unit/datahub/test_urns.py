"""URNs against DataHub's SDK, and against what its server refuses."""

from __future__ import annotations

import re
from urllib.parse import quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_sparklineage.datahub import naming
from airflow_provider_sparklineage.datahub.proposals import Proposal
from tests.unit.datahub.sdk import checked, require_sdk

HOSTILE = st.text(
    st.sampled_from(",()␟%2C8F9EA0DB\x00\n \ud800é漢~*/.:a") | st.characters(), max_size=600
)


def refused(urn: str) -> str:
    """Give why GMS refuses a URN, as ``UrnValidationUtil`` does, strictly; empty if it takes it."""
    encoded = quote_plus(urn, safe="*").replace("~", "%7E")
    if len(encoded) > naming.MAX_BYTES and not urn.startswith("urn:li:schemaField:"):
        return "too long"
    if urn != urn.strip() or "␟" in urn:
        return "blank or delimiter"
    return (
        "" if re.fullmatch(r"urn:li:dataset:\(urn:li:[^,()]+,[^,()]+,[A-Z_]+\)", urn) else "parts"
    )


def as_status(urn: str) -> list[Proposal]:
    return checked([Proposal(urn, "status", {"removed": False})])


@given(HOSTILE.filter(bool))
@example("a" * 500)
@example("漢" * 500)
@example(",()␟" * 200)
def test_no_name_breaks_the_urn_of_a_dataset(name):
    urn = naming.dataset_urn("s3", name, "PROD")

    assert refused(urn) == ""
    assert naming.platform_urn_of(urn) == "urn:li:dataPlatform:s3"


@given(HOSTILE, HOSTILE)
@example("a,b", "a%2Cb")
@example("a%2Cb", "a%252Cb")
@example("a%252Cb", "a%25252Cb")
@example("a" * 500, "a" * 501)
@example("\ud800", "%ED%A0%80")
def test_two_names_are_two_datasets(name, other):
    same = naming.dataset_urn("s3", name, "PROD") == naming.dataset_urn("s3", other, "PROD")

    assert same == (name == other)


@given(HOSTILE, HOSTILE)
def test_two_texts_are_two_when_they_are_encoded(text, other):
    assert (naming.encoded(text) == naming.encoded(other)) == (text == other)


@pytest.mark.parametrize("name", ["lake/orders", "a,b(c)␟", "100%", "a%2fb", "größe/漢字", "a b"])
def test_urns_are_those_that_the_sdk_makes(name):
    require_sdk()
    from datahub.emitter import mce_builder

    urn = naming.dataset_urn("s3", name, "DEV")

    assert urn == mce_builder.make_dataset_urn("s3", name, "DEV")
    assert naming.schema_field_urn(urn, name) == mce_builder.make_schema_field_urn(urn, name)
    assert naming.platform_instance_urn("s3", "eu") == mce_builder.make_dataplatform_instance_urn(
        "s3", "eu"
    )


@pytest.mark.parametrize("name", ["a,b(c)␟", "a%2Cb", "\x00\n\t", "\ud800", "x" * 5000, "漢" * 400])
def test_the_sdk_takes_hostile_names(name):
    as_status(naming.dataset_urn("s3", name, "PROD"))
    as_status(naming.dataset_urn(name, name, "PROD"))


def test_a_name_that_is_too_long_keeps_its_beginning_and_a_checksum_of_all():
    urn = naming.dataset_urn("s3", f"lake/{'x' * 500}", "PROD")

    assert re.fullmatch(r"urn:li:dataset:\(urn:li:dataPlatform:s3,lake/x+~[0-9a-f]{16},PROD\)", urn)
    assert len(quote_plus(urn, safe="*").replace("~", "%7E")) == naming.MAX_BYTES


def test_a_name_that_has_just_room_is_whole():
    room = naming.MAX_BYTES - len(quote_plus("urn:li:dataset:(urn:li:dataPlatform:s3,,PROD)"))

    assert naming.dataset_urn("s3", "x" * room, "PROD").count("x") == room
    assert "~" in naming.dataset_urn("s3", "x" * (room + 1), "PROD")


def test_a_code_is_never_cut_in_two():
    urn = naming.dataset_urn("s3", "(" * 500, "PROD")

    assert re.fullmatch(r"urn:li:dataset:\(urn:li:dataPlatform:s3,(%28)+~[0-9a-f]+,PROD\)", urn)
