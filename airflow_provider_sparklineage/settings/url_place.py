"""Where the URL of a backend stands, in the words of who has to correct it.

It may be in a connection's host, port and schema, in a host alone, or in a transport: of a
connection, of Airflow's configuration, or of OpenLineage's. Who reads what is wrong with a URL
knows neither which of them was taken nor what it is called.
"""

from __future__ import annotations

from dataclasses import dataclass

_PARTS = ("host", "port", "schema")


@dataclass(frozen=True)
class UrlPlace:
    """The field of a URL, and that of its key.

    :param url: the one field that has all of the URL; empty if its parts have fields of their own
    :param key: the field of the API key
    """

    url: str = ""
    key: str = "the connection's password"

    def of(self, *parts: str) -> str:
        """Name the field of some parts of the URL, of ``host``, ``port`` and ``schema``."""
        if self.url:
            return self.url
        *first, last = [part for part in _PARTS if part in parts]
        named = f"{', '.join(first)} and {last}" if first else last
        return f"the connection's {named}"


FIELDS = UrlPlace()
"""The connection's own fields, one for each part."""
