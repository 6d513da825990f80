"""Write what DataHub is asked to store of recorded runs: ``python -m tests.write_datahub``.

One file for each in ``tests/golden/datahub``, of one Spark: a line is a proposal, with what is
changed, the entity, the aspect, and its value. ``make record-events`` does it after recording.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datahub.conversion import proposals
from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from tests.conftest import GOLDEN, OBSERVED, RECORDED, Recorded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.datahub.proposals import Proposal

FOLDER = GOLDEN / "datahub"
SPARK = "4.0"
CASES = sorted(case for spark, case in RECORDED if spark == SPARK)


def converted(case: str, spark: str = SPARK) -> list[Proposal]:
    """Convert the event of an application, with what the observer saw, as one of a task."""
    bundle = Recorded(case, spark).bundle(is_observed=(spark, case) in OBSERVED)
    event: dict[str, Any] = merged_event(bundle, task_lineage(bundle))
    event["job"]["name"] = f"golden.{case}"
    return list(proposals(event))


def text(of: Iterable[Proposal]) -> str:
    """Give the lines of a file."""
    return "".join(f"{_line(one)}\n" for one in of)


def _line(one: Proposal) -> str:
    document = (one.change_type, one.urn, one.aspect_name, one.aspect)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def main() -> None:
    """Write all files, and remove those of applications that are gone."""
    FOLDER.mkdir(exist_ok=True)
    for file in FOLDER.glob("*.ndjson"):
        file.unlink()
    for case in CASES:
        (FOLDER / f"{case}.ndjson").write_text(text(converted(case)), encoding="utf-8")


if __name__ == "__main__":
    main()
