"""``capture_endpoint``: how it is written, and where the worker listens by it."""

from __future__ import annotations

import errno
import os
import socket
import threading

import pytest

from airflow_provider_sparklineage.model.exceptions import RemoteDriverError, SettingsError
from airflow_provider_sparklineage.spark.capture import receiver as module
from airflow_provider_sparklineage.spark.capture.receiver import Endpoint


@pytest.mark.parametrize(
    ("text", "host", "ports"),
    [
        ("worker-1.example.com", "worker-1.example.com", range(1)),
        ("10.0.0.7:20000", "10.0.0.7", range(20000, 20001)),
        ("{hostname}:20000-20002", "celery-1", range(20000, 20003)),
        ("[fd00::7]:20000", "[fd00::7]", range(20000, 20001)),
        (" worker ", "worker", range(1)),
        ("worker:65535", "worker", range(65535, 65536)),
    ],
)
def test_it_is_a_name_with_or_without_ports(text, host, ports):
    assert Endpoint.read(text, "celery-1") == Endpoint(host, ports)


@pytest.mark.parametrize(
    "text",
    [
        *("http://worker:80", "worker:", "worker:0", "worker:70000", "worker:20-10", "fd00::7"),
        *("a b", f"worker:{5000 * '9'}", "worker:\u0663"),
    ],
)
def test_what_is_none_is_refused_with_an_example(text):
    with pytest.raises(SettingsError, match=r"worker-1.example.com:20000-20100"):
        Endpoint.read(text, "celery-1")


class Machine:
    """A machine with addresses, ports that are taken, and what listens on it."""

    def __init__(self, *addresses, taken=()):
        self.addresses = {"0.0.0.0", "::", *addresses}
        self.taken = set(taken)

    def listen(self, address, port):
        if address not in self.addresses:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        if port in self.taken:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        return address, port


@pytest.fixture
def resolves(monkeypatch):
    """Set the addresses that every name has."""

    def resolves(*addresses):
        found = [(None, None, None, "", (address, 0)) for address in addresses]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    return resolves


@pytest.mark.parametrize(
    ("host", "addresses", "own", "listens_on"),
    [
        ("worker", ["10.0.0.7"], ["10.0.0.7"], "10.0.0.7"),
        ("worker", ["10.0.0.7", "10.1.0.7"], ["10.1.0.7"], "10.1.0.7"),
        ("worker", ["fd00::7"], ["fd00::7"], "fd00::7"),
        ("worker", ["203.0.113.9"], ["10.0.0.7"], "0.0.0.0"),
        ("203.0.113.9", ["203.0.113.9"], ["10.0.0.7"], "0.0.0.0"),
        ("worker", ["2001:db8::9"], ["fd00::7"], "::"),
        ("worker", ["127.0.1.1"], ["127.0.1.1", "10.0.0.7"], "0.0.0.0"),
        ("worker", ["127.0.1.1", "10.0.0.7"], ["127.0.1.1", "10.0.0.7"], "10.0.0.7"),
        ("127.0.0.1", ["127.0.0.1"], ["127.0.0.1"], "127.0.0.1"),
        ("localhost", ["::1", "127.0.0.1"], ["127.0.0.1"], "127.0.0.1"),
        ("[::1]", ["::1"], ["::1"], "::1"),
    ],
    ids=[
        "its own address",
        "the one of its addresses that is this machine's",
        "IPv6",
        "a name that is led here from elsewhere",
        "an address that is led here from elsewhere",
        "the same with IPv6",
        "its own name in /etc/hosts",
        "its own name in /etc/hosts and in DNS",
        "this machine alone, by address",
        "this machine alone, by name",
        "this machine alone, by IPv6",
    ],
)
def test_only_the_interface_that_the_name_leads_to_is_listened_on(
    resolves, host, addresses, own, listens_on
):
    resolves(*addresses)
    found = Endpoint(host, range(20000, 20001)).listening(Machine(*own).listen)
    assert found == (listens_on, 20000)


def test_the_first_port_that_is_free_is_taken(resolves):
    resolves("10.0.0.7")
    machine = Machine("10.0.0.7", taken=[20000, 20001])
    assert Endpoint("worker", range(20000, 20003)).listening(machine.listen)[1] == 20002


def test_if_none_is_free_the_reason_names_the_ports(resolves):
    resolves("10.0.0.7")
    machine = Machine("10.0.0.7", taken=range(20000, 20003))
    with pytest.raises(RemoteDriverError, match="worker:20000-20002: Address already in use"):
        Endpoint("worker", range(20000, 20003)).listening(machine.listen)


def test_a_port_that_this_user_may_not_take_is_reported(resolves):
    resolves("10.0.0.7")

    def listen(address, port):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    with pytest.raises(RemoteDriverError, match="worker:80: Permission denied"):
        Endpoint("worker", range(80, 81)).listening(listen)


def test_a_name_that_has_no_address_is_reported(monkeypatch):
    def getaddrinfo(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(RemoteDriverError, match="nowhere: Name or service not known"):
        Endpoint("nowhere", range(1)).listening(Machine().listen)


@pytest.mark.parametrize("host", ["..", f"{64 * 'w'}.example.com"])
def test_a_name_that_no_name_server_has_is_reported(host):
    with pytest.raises(RemoteDriverError, match="No name server has such a name"):
        Endpoint(host, range(1)).listening(lambda *_: None)


def test_a_name_server_that_does_not_answer_is_not_waited_for(monkeypatch):
    answers = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers.wait(60) and [])
    monkeypatch.setattr(module, "RESOLVE_S", 0.05)
    try:
        with pytest.raises(RemoteDriverError, match="its name server does not answer"):
            Endpoint("worker", range(1)).listening(Machine().listen)
    finally:
        answers.set()
