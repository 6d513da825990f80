"""Immutable values: what a frozen dataclass is to those who use it."""

import copy
import pickle

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.model.terms import Frozen


class Point(Frozen, frozen=True):
    x: int
    y: tuple[int, ...] = ()


class Other(Frozen, frozen=True):
    x: int
    y: tuple[int, ...] = ()


def test_values_are_compared_and_hashed_by_their_fields():
    assert Point(1) == Point(1, ())
    assert len({Point(1), Point(1), Point(2)}) == 2


def test_values_of_two_classes_are_not_equal():
    assert Point(1) != Other(1)


def test_a_value_is_never_changed():
    with pytest.raises(AttributeError):
        Point(1).x = 2
    assert replace(Point(1), y=(3,)) == Point(1, (3,))


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))]
)
def test_a_copy_is_equal(copied):
    assert copied(Point(1, (2,))) == Point(1, (2,))
