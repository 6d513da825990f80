"""The faults, one module for each area."""

from __future__ import annotations

from tests.faults.areas import (
    capture_location,
    listener_jar,
    listener_output,
    observer_output,
    settings,
    spark_found,
    templates,
)

ALL = tuple(
    module.AREA
    for module in (
        settings,
        templates,
        spark_found,
        listener_jar,
        capture_location,
        listener_output,
        observer_output,
    )
)
"""In the order of a task's life."""
