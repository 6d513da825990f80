"""What is missing from the lineage of a run, as properties of that run: visible, and found by code.

=============================  =====================================================================
property                       its value
=============================  =====================================================================
``lineage``                    ``complete``, or e.g. ``incomplete: 12 things are missing``
``missing: no_events``         of each code of a degradation the sentences, a line each; at most
                               ``MAX_SENTENCES``, and how many more there are
=============================  =====================================================================

The codes are those of the run facet ``sparkLineage_capture`` (docs/operator.md); a run whose event
has no such facet has neither, for nobody looked.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub.lenient import items, mapping, number, text
from airflow_provider_sparklineage.datahub.values import name_of_property
from airflow_provider_sparklineage.event.capture_facet import CAPTURE_KEY
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.texts import truncated

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.document import Facets

MAX_SENTENCES = 5
"""Sentences of one code; the event has all that it lists."""
MAX_CODES = 60
"""There are fewer; who else writes this facet may make up more."""
_MAX_SENTENCE = 400  # five of them are what is shown of a property


def missing(facets: Facets) -> dict[str, str]:
    """Give what is missing; empty if the run has no facet that knows.

    :param facets: of the run
    """
    if CAPTURE_KEY not in facets:
        return {}
    sentences = _sentences(mapping(facets[CAPTURE_KEY]))
    counts = _counts(mapping(facets[CAPTURE_KEY]), sentences)
    if not counts:
        return {"lineage": "complete"}
    shown = dict(list(counts.items())[:MAX_CODES])
    return {"lineage": _summary(sum(counts.values()))} | {
        name_of_property(f"missing: {code}"): _value(sentences[code], count)
        for code, count in shown.items()
    }


def _sentences(capture: Facets) -> dict[str, list[str]]:
    found = defaultdict(list)
    for entry in items(capture.get("degradations")):
        if code := text(entry.get("code")):
            found[code].append(truncated(scrub(text(entry.get("message"))), _MAX_SENTENCE))
    return found


def _counts(capture: Facets, sentences: dict[str, list[str]]) -> dict[str, int]:
    """Count by code; the facet has counts where it does not list all."""
    listed = {code: len(found) for code, found in sentences.items()}
    counted = mapping(capture.get("degradationCounts"))
    return listed | {text(code): found for code in counted if (found := number(counted[code]))}


def _summary(count: int) -> str:
    return f"incomplete: {count} {'thing is' if count == 1 else 'things are'} missing"


def _value(sentences: list[str], count: int) -> str:
    lines = list(filter(None, sentences[:MAX_SENTENCES]))
    more = count - len(lines)
    if more > 0:
        lines.append(f"… and {more} more" if lines else str(count))
    return "\n".join(lines)
