"""Airflow's own transport for Spark: what ``openlineage_inject_transport_info`` asks for.

The operator would pass it by ``--conf``, where every user of the machine reads its key. So it is
taken from the provider here, corrected, and goes the way of a transport of the user's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.openlineage.utils.spark import (
    inject_transport_information_into_spark_properties,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context

_ASKED = "_openlineage_inject_transport_info"


def properties(operator: Any, context: Context) -> dict[str, str]:
    """Give the transport's Spark properties if the operator would inject them, and keep it from it.

    :param operator: a SparkSubmitOperator; its flag is off until its execution has ended
    """
    if not getattr(operator, _ASKED, False):
        return {}
    setattr(operator, _ASKED, False)
    given: Mapping[str, Any] = inject_transport_information_into_spark_properties({}, context)
    return corrected(given)


def corrected(given: Mapping[str, Any]) -> dict[str, str]:
    """Correct what the listener would misread in the provider's properties.

    The listener puts ``Bearer`` before a key itself, and takes a time of 0, to which times below a
    second are truncated, as no time at all.
    """
    properties = {}
    for key, value in given.items():
        if value is None or (key.endswith(".timeoutInMillis") and str(value) == "0"):
            continue
        properties[key] = str(value)
        if key.endswith(".auth.apiKey"):
            properties[key] = properties[key].removeprefix("Bearer ")
    return properties
