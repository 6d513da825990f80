"""The lineage of a task as text that people can check, one line per fact.

    reads orders dt=2024-05-06
    writes revenue
    revenue.revenue <- orders.amount AGGREGATION, rates.rate AGGREGATION
    revenue.* <- customers.customer_id FILTER+JOIN
    says internal_read_assumed staging/enriched_orders

``*`` is what influences all columns of an output, and ``says`` a degradation. The truths in
``tests/golden/lineage`` are such texts, and also have

- ``[3.5 4.0]`` before a line that is so in these Sparks only;
- ``-`` before a source that is true and that the event does not have: a gap that it must report;
- ``!`` before a source that is true and unreported, where nothing in the events points at the gap;
- ``+`` before a source, or a line, that the event has though it is not true;
- ``#`` before a remark. What is not true, or not even reported as missing, needs one above.

Where the observer looked, the partitions are those that it saw. The truths of that are in
``tests/golden/lineage/observed``.

    python -m tests.lineage_text staging_chain               what is answered today, in all Sparks
    python -m tests.lineage_text --observed delta_tables     the same with what was observed
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from airflow_provider_sparklineage.lineage.columns.edges import Edges, Transformation
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset
    from airflow_provider_sparklineage.lineage.merge import TaskLineage
    from airflow_provider_sparklineage.model.datasets import DatasetName

_OF_SPARKS = re.compile(r"\[([\d. ]+)\] ")


def short(name: DatasetName | str) -> str:
    """Take the lake's folder out of a dataset's name."""
    return str(name).replace("/lake/", "", 1) if str(name).startswith("/lake/") else str(name)


def lines_of(lineage: TaskLineage) -> list[str]:
    """Write the lineage of a task."""
    lines = [_side("reads", dataset) for dataset in lineage.inputs]
    lines += [_side("writes", dataset) for dataset in lineage.outputs]
    for dataset in lineage.outputs:
        if dataset.columns is not None:
            name = short(dataset.name)
            for column, edges in dataset.columns.fields.items():
                if edges:
                    lines.append(f"{name}.{column} <- {_sources(edges)}")
            if dataset.columns.dataset:
                lines.append(f"{name}.* <- {_sources(dataset.columns.dataset)}")
    for degradation in lineage.degradations:
        of = f" {short(degradation.dataset)}" if degradation.dataset else ""
        column = f".{degradation.column}" if degradation.column else ""
        lines.append(f"says {degradation.code}{of}{column}")
    return sorted(set(lines))


def _side(word: str, dataset: LineageDataset) -> str:
    name = short(dataset.name)
    parts = sorted(short(at).removeprefix(f"{name}/") for at in dataset.locations or ())
    if dataset.subset is not None:
        parts = sorted(map(str, dataset.subset.partitions))
    return " ".join([word, name, *parts])


def _sources(edges: Edges) -> str:
    return ", ".join(
        sorted(
            f"{short(source.dataset)}.{source.field} {'+'.join(sorted(set(map(_kind, found))))}"
            for source, found in edges.items()
        )
    )


def _kind(transformation: Transformation) -> str:
    kind = transformation.subtype or transformation.type or "UNKNOWN"
    return f"{kind}{'/masked' if transformation.masking else ''}"


class Truth:
    """What is true of an application recorded with one Spark, and what its event reports of it."""

    def __init__(self, text: str, spark: str) -> None:
        self.reported: list[str] = []
        self.unreported: dict[str, list[str]] = {}
        for line in text.splitlines():
            of_some = _OF_SPARKS.match(line)
            if not line or line.startswith("#") or (of_some and spark not in of_some[1].split()):
                continue
            self._add(line[of_some.end() :] if of_some else line)

    def _add(self, line: str) -> None:
        if line.startswith("-"):
            self.unreported[line[1:]] = []
            return
        column, arrow, sources = line.removeprefix("+").partition(" <- ")
        if not arrow:
            self.reported.append(line.removeprefix("+"))
            return
        found = sources.split(", ")
        if unreported := [source[1:] for source in found if source.startswith("-")]:
            self.unreported[column] = unreported
        if reported := [source.removeprefix("+") for source in found if source[0] not in "-!"]:
            self.reported.append(f"{column} <- {', '.join(sorted(reported))}")

    def silent_gaps(self) -> Iterator[str]:
        """Give what the event neither has nor reports as missing."""
        says = [line for line in self.reported if line.startswith("says ")]
        degradations = {line.removeprefix("says ") for line in says}
        codes = {text.partition(" ")[0] for text in degradations}
        of = {text.partition(" ")[2] for text in degradations}
        for unreported in self.unreported:
            side, _, dataset = unreported.partition(" ")
            if side in ("reads", "writes"):
                is_reported = dataset in of or _HIDING[side] in codes
            else:
                output, _, column = unreported.rpartition(".")
                is_reported = unreported in of or output in of
                if column == "*":  # one column that is reported stands for all
                    is_reported = is_reported or any(text.startswith(f"{output}.") for text in of)
            if not is_reported:
                yield unreported


# Degradations for missing datasets that they cannot name.
_HIDING = {"reads": "subquery_unseen", "writes": "delta_hides_writes"}


def lines_of_several(answers: Mapping[str, Iterable[str]]) -> list[str]:
    """Write the answers for several Sparks as one text; lines that differ carry their Sparks."""
    sparks: dict[str, list[str]] = {}
    for spark, lines in answers.items():
        for line in lines:
            sparks.setdefault(line, []).append(spark)
    return [
        line if len(of) == len(answers) else f"[{' '.join(of)}] {line}"
        for line, of in sorted(sparks.items())
    ]


if __name__ == "__main__":
    from tests.conftest import SPARKS, Recorded, golden

    for case in sys.argv[1:]:
        if case == "--observed":
            continue
        there = [Recorded(case, spark) for spark in SPARKS if golden(case, spark).exists()]
        answers = {
            of.spark: lines_of(of.observed if "--observed" in sys.argv else of.lineage)
            for of in there
        }
        print(f"# {case}", *lines_of_several(answers), "", sep="\n")
