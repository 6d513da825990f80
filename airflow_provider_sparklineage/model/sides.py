"""The two sides of a job."""

from __future__ import annotations

from enum import StrEnum


class Side(StrEnum):
    """Whether a dataset is read or written."""

    READ = "read"
    WRITE = "write"
