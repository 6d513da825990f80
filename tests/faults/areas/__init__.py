"""The faults, one module for each area."""

from __future__ import annotations

from tests.faults.areas import (
    adoption,
    airflow,
    backend,
    capture_location,
    cluster,
    defects,
    driver,
    listener_jar,
    listener_output,
    observer_output,
    processes,
    settings,
    spark_end,
    spark_found,
    switches,
    templates,
)

ALL = tuple(
    module.AREA
    for module in (
        settings,
        adoption,
        templates,
        spark_found,
        listener_jar,
        capture_location,
        cluster,
        driver,
        listener_output,
        observer_output,
        spark_end,
        airflow,
        backend,
        processes,
        switches,
        defects,
    )
)
"""In the order of a task's life."""
