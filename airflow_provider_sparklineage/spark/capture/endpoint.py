"""``capture_endpoint``: by which name drivers reach this worker, and where it listens for them."""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_sparklineage.model.exceptions import RemoteDriverError, SettingsError
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.storage.bounded import OutOfTimeError, within

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

HOSTNAME = "{hostname}"
RESOLVE_S = 5.0
"""For finding a name's addresses: a name server that does not answer may take half a minute."""

_ENDPOINT = re.compile(
    r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.-]+)(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?"
)
_LARGEST_PORT = 65535


class Endpoint(Frozen, frozen=True):
    """Where drivers send to.

    :param host: name or address, as in a URL
    :param ports: that may be taken; 0 is any
    """

    host: str
    ports: range

    @classmethod
    def of(cls, text: str, hostname: str) -> Endpoint:
        """Read the option.

        :param hostname: the worker's own
        :raise SettingsError: if it cannot be understood
        """
        match = _ENDPOINT.fullmatch(text.replace(HOSTNAME, hostname).strip())
        first = int(match["first"] or 0) if match else 0
        last = int(match["last"] or first) if match else 0
        if match is None or not (first <= last <= _LARGEST_PORT) or (match["first"] and not first):
            problem = f"[sparklineage] capture_endpoint {text} is no name with ports."
            fix = "Write it as worker-1.example.com:20000-20100; an IPv6 address in brackets."
            raise SettingsError(problem, fix)
        return cls(match["host"], range(first, last + 1))

    def listening(self, listen: Callable[[str, int], T]) -> T:
        """Listen where the name leads, and nowhere else if that is possible.

        :param listen: on an address and a port
        :raise RemoteDriverError: if the name leads nowhere, or no port can be taken
        """
        reason = OSError(errno.EADDRNOTAVAIL, "It has no address")
        try:
            for address in _addresses(self.host, self._resolved()):
                for port in self.ports:
                    try:
                        return listen(address, port)
                    except OSError as error:
                        reason = error
                        if error.errno == errno.EADDRNOTAVAIL:
                            break  # it is none of this machine's
                        if error.errno != errno.EADDRINUSE:
                            raise
            raise reason
        except (OSError, OutOfTimeError) as error:
            why = getattr(error, "strerror", None) or "its name server does not answer"
            problem = f"This worker cannot listen for what the driver sends to {self}: {why}."
            fix = (
                "[sparklineage] capture_endpoint has to be a name or an address of this worker, "
                "with as many ports as tasks run on it at once."
            )
            raise RemoteDriverError(problem, fix) from error

    def _resolved(self) -> list[str]:
        bare = self.host.strip("[]")
        found = within(
            RESOLVE_S,
            lambda: socket.getaddrinfo(bare, None, type=socket.SOCK_STREAM),
            "sparklineage-endpoint",
        )
        return [str(address[0]) for *_, address in found]

    def __str__(self) -> str:
        if not self.ports[-1]:
            return self.host
        ports = f"{self.ports[0]}-{self.ports[-1]}" if len(self.ports) > 1 else f"{self.ports[0]}"
        return f"{self.host}:{ports}"


def _addresses(host: str, resolved: list[str]) -> list[str]:
    """List where to listen, the first that this machine has.

    An address may be none of an interface: one that a cloud or Kubernetes leads here. And many a
    machine has its own name in ``/etc/hosts`` as an address that only itself can reach. In both
    cases drivers come by an address that is not known, so all are listened on.

    :param resolved: addresses of the host
    """
    outside = [a for a in resolved if not ipaddress.ip_address(a.partition("%")[0]).is_loopback]
    if host == "localhost" or (not outside and _is_address(host)):
        return resolved
    any_address = "::" if outside and all(":" in address for address in outside) else "0.0.0.0"  # noqa: S104
    return [*dict.fromkeys(outside), any_address]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
