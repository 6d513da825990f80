"""Settings as Airflow has them: its configuration and its connections, as sources of values."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import conf as airflow_conf

from airflow_provider_sparklineage.options import OPTIONS, SECTION
from airflow_provider_sparklineage.settings import Origin, Source


def configuration() -> Source:
    """Give what the ``[sparklineage]`` section sets, environment variables included.

    Airflow answers with the provider's defaults as well; those are not set by anyone.
    """
    found = {
        option.name: airflow_conf.get(SECTION, option.name, fallback=None) for option in OPTIONS
    }
    values = {o.name: found[o.name] for o in OPTIONS if found[o.name] != o.default}
    return Source(Origin.CONFIGURATION, values)
