"""Which children of a composite transport did not take an event."""

from __future__ import annotations

import pytest
from openlineage.client.transport import get_default_factory
from openlineage.client.transport.transport import Config, Transport

from airflow_provider_sparklineage.event.emitter import failures


class Failing(Transport):
    config_class = Config

    def __init__(self, config):
        pass

    def emit(self, event):
        raise RuntimeError(event)


FAILING = {"type": f"{__name__}.Failing"}
TAKING = {"type": "noop"}


def transport(*children, **config):
    """Make one from copies: the factory takes keys out of what it is given."""
    transports = [dict(child) for child in children]
    given = {"type": "composite", "transports": transports, **config}
    return get_default_factory().create(given)


def missed(made):
    with failures(made) as found:
        made.emit("an event")
    return [str(failure.error) for failure in found]


@pytest.fixture(autouse=True)
def _by_its_name(monkeypatch):
    """Let the factory find this module, whose name pytest has made up."""
    import sys

    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or __import__(__name__))


@pytest.mark.parametrize(
    ("children", "expected"),
    [
        ([TAKING, TAKING], []),
        ([TAKING, FAILING], ["an event"]),
        ([FAILING, TAKING, FAILING], ["an event", "an event"]),
    ],
    ids=["none", "one", "two"],
)
def test_those_that_fail_are_known(children, expected):
    assert missed(transport(*children)) == expected


def test_one_below_another_is_known_once_by_its_own_error():
    below = {"type": "composite", "transports": [TAKING, FAILING]}
    assert missed(transport(below, TAKING)) == ["an event"]


def test_where_one_place_is_enough_none_was_missed():
    assert missed(transport(FAILING, TAKING, continue_on_success=False)) == []


def test_a_transport_that_is_not_composite_raises_itself():
    assert missed(get_default_factory().create(dict(TAKING))) == []
    failing = get_default_factory().create(dict(FAILING))
    with failures(failing) as found, pytest.raises(RuntimeError):
        failing.emit("an event")
    assert found == []


def test_children_are_as_they_were():
    made = transport(TAKING, FAILING)
    missed(made)
    assert all("emit" not in vars(child) for child in made.transports)
    assert missed(made) == ["an event"], "once for each event"


def test_one_that_fails_for_good_is_not_asked_again():
    made = transport(TAKING, FAILING)
    with failures(made) as found:
        made.emit("the first event")
    [failure] = found
    failure.repeat()
    assert missed(made) == missed(made) == ["the first event"]
