"""What texts say of time: values of partitions, folders and arguments, read and written.

================  ==================================================================================
:mod:`.patterns`  texts in a format of :meth:`~datetime.datetime.strptime`, such as ``%Y%m%d``
:mod:`.texts`     the canonical form, ISO 8601, to the precision of the text or of a transform
:mod:`.calendar`  years, months, days and hours as counts, steps, intervals and columns
================  ==================================================================================

A canonical form is ``2024``, ``2024-05``, ``2024-05-06``, ``2024-05-06T03``, ``2024-05-06T03:30``
and so on. The rest of the package imports this module only.
"""

from __future__ import annotations

from airflow_provider_sparklineage.model.timestamps.calendar import (
    date_of_columns,
    end_of,
    step_counter,
)
from airflow_provider_sparklineage.model.timestamps.patterns import (
    check_format,
    digits,
    from_digits,
    parsed,
    pattern_regex,
    value_format,
    written,
)
from airflow_provider_sparklineage.model.timestamps.texts import (
    PRECISION,
    canonical_day,
    canonical_month,
    canonical_of_transform,
    canonical_time,
    common_format,
    has_zone,
    in_utc,
    may_be_date,
    to_datetime,
    to_the_second,
)

__all__ = [
    "PRECISION",
    "canonical_day",
    "canonical_month",
    "canonical_of_transform",
    "canonical_time",
    "check_format",
    "common_format",
    "date_of_columns",
    "digits",
    "end_of",
    "from_digits",
    "has_zone",
    "in_utc",
    "may_be_date",
    "parsed",
    "pattern_regex",
    "step_counter",
    "to_datetime",
    "to_the_second",
    "value_format",
    "written",
]
