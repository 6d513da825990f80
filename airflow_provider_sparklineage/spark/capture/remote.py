"""What a driver in a cluster delivers of a try, and how it becomes the try's capture bundle.

::

    <capture_location>/<name of the bundle>/
        manifest.json                    by the worker: the bundle's manifest
        <attempt>/start.json             by the driver, first: a Start
        <attempt>/events-00001.ndjson    whole lines of what the listener wrote, in order
        <attempt>/observations-00001.ndjson    the same of what the observer wrote
        <attempt>/end.json               by the driver, last: an End

``<attempt>`` is of one driver: ``<number of the attempt>-<start in ms>-<8 hex digits>``, so that
names sort in time: YARN and Kubernetes start a driver again. Every file appears whole or not at
all. Other names (``.part``, ``.crc``) are nobody's. What the driver writes is
:mod:`sparklineage_observer.delivery`'s.
"""

from __future__ import annotations

import re

import msgspec

START, END = "start.json", "end.json"
ATTEMPT = re.compile(r"\d{5}-\d{13}-[0-9a-f]{8}")
SEGMENT = re.compile(r"(?P<kind>events|observations)-(?P<number>\d{5,})\.ndjson")


class Start(msgspec.Struct, frozen=True):
    """That a driver has begun to deliver."""

    application_run_id: str
    """Of the manifest. A folder with another one is not this try's."""
    application_id: str
    started_ms: int


class End(msgspec.Struct, frozen=True):
    """That a driver has delivered all that there was when its Python ended."""

    application_run_id: str
    segments: dict[str, int]
    """How many, by kind."""
    delivery_ms: int = 0
    """How long delivering took, in all."""
    errors: tuple[str, ...] = ()
