"""Arguments of the operator that can be wrong before anything is rendered: refused with the DAG."""

from __future__ import annotations

import re
from collections.abc import Collection

from airflow_provider_sparklineage.model.exceptions import SettingsError

POLICIES = ("warn", "ignore", "fail")
_SIDES = ("reads", "writes")
# Who writes one of these wants a side, and a glob of that name would match nothing.
_LIKE_SIDE = re.compile(r"(read|write|input|output)s?", re.IGNORECASE)


def check(
    on_partition_mismatch: object,
    check_partitions_of: object,
    callback: object,
    record_asset_partitions: object,
) -> None:
    """Refuse what can only be a mistake, where the author of the DAG sees it.

    :raise SettingsError: naming the argument and what it may be
    """
    if on_partition_mismatch not in POLICIES:
        problem = f"on_partition_mismatch={on_partition_mismatch!r}."
        fix = "It must be 'warn', 'ignore' or 'fail'."
        raise SettingsError(problem, fix)
    of = check_partitions_of
    chosen = [of] if isinstance(of, str) else of if isinstance(of, Collection) else []
    is_usable = of is None or (chosen and all(isinstance(c, str) and c.strip() for c in chosen))
    mistakes = [c for c in chosen if c not in _SIDES and _LIKE_SIDE.fullmatch(str(c).strip())]
    if mistakes or not is_usable:
        problem = f"check_partitions_of={of!r}."
        fix = (
            "It must be 'reads', 'writes', a glob of datasets such as '*/lake/revenue', or a list "
            "of these."
        )
        raise SettingsError(problem, fix)
    if callback is not None and not callable(callback):
        problem = f"on_partition_mismatch_callback={callback!r}."
        fix = "It must be a function."
        raise SettingsError(problem, fix)
    key = record_asset_partitions
    if not isinstance(key, bool) and not (isinstance(key, str) and re.search(r"\{[^{}]+\}", key)):
        problem = f"record_asset_partitions={key!r}."
        fix = "It must be True, False, or a format of keys such as '{dt}|{region}'."
        raise SettingsError(problem, fix)
