"""Texts of an event: without credentials, secrets (not in names) and literals; long ones truncated.

=============================  =====================================================================
:func:`without_literals`       ``id = 5`` is ``id = ?``, on request; this is a step of the lineage,
                               before the event is made
:func:`without_credentials`    ``s3a://key:secret@bucket/x`` is ``s3a://bucket/x``, in names too
:func:`masked`                 secrets are masked in all texts that are not names
:func:`shortened`              long texts are truncated, after secrets were removed: half a secret
                               would not be recognised
=============================  =====================================================================
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

from msgspec.structs import replace

from airflow_provider_sparklineage.event.document import IDENTITIES, Walk, is_unchanged, replaced
from airflow_provider_sparklineage.event.model import CHECK_KEY, COLUMNS_KEY
from airflow_provider_sparklineage.model import subset
from airflow_provider_sparklineage.model.allowance import UNLIMITED, Allowance, Stage, cut_short
from airflow_provider_sparklineage.model.credentials import scrub, scrub_name
from airflow_provider_sparklineage.model.texts import truncated

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.event.document import Event, Facets
    from airflow_provider_sparklineage.lineage.columns.edges import Transformations
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage

    Hide = Callable[[str], str]


# --- literals -------------------------------------------------------------------------------------


HIDDEN = "?"
"""The sign that replaces a literal."""


@lru_cache(maxsize=4096)  # many edges have the same description
def hidden(text: str) -> str:
    """Replace each literal of an SQL expression by ``?``; all of a text that cannot be read as SQL.

    A comment could contain a literal, so a text with a comment is also hidden as a whole.
    """
    from sqlglot.dialects.spark import Spark  # takes half a second, so only if literals are hidden
    from sqlglot.errors import TokenError

    try:
        tokens = Spark().tokenize(text)
    except TokenError:
        return HIDDEN
    if any(token.comments for token in tokens):
        return HIDDEN
    made, done = "", 0
    for token in tokens:
        if token.token_type.name.endswith(("STRING", "NUMBER")) and token.start >= done:
            between = text[done : token.start]
            # Two strings in a row are one, with a quote in it.
            made += between if not between and made.endswith(HIDDEN) else between + HIDDEN
            done = token.end + 1
    return made + text[done:]


def without_literals(lineage: TaskLineage, allowance: Allowance = UNLIMITED) -> TaskLineage:
    """Hide the literals in the conditions and descriptions of a task's lineage.

    This is done before the event is made, because the event repeats conditions in summaries.
    Partitions and locations stay, for they are the content of the event.

    :param allowance: once the time for this is over, texts are hidden as a whole, and a degradation
        reports that
    """

    def hide(text: str) -> str:
        return HIDDEN if allowance.is_over(Stage.LITERALS) else hidden(text)

    inputs = tuple(_dataset(d, hide) for d in lineage.inputs)
    outputs = tuple(_dataset(d, hide) for d in lineage.outputs)
    cut = (_CUT,) if allowance.is_over(Stage.LITERALS) else ()
    return replace(
        lineage, inputs=inputs, outputs=outputs, degradations=(*lineage.degradations, *cut)
    )


_CUT = cut_short("Hiding literals took too long, so some texts are hidden as a whole")


def _dataset(dataset: LineageDataset, hide: Hide) -> LineageDataset:
    def hidden_in(transformations: Transformations) -> Transformations:
        return tuple(
            t._replace(description=hide(t.description)) if t.description else t
            for t in transformations
        )

    columns = dataset.columns and dataset.columns.changed(hidden_in)
    selected = dataset.selected
    names_partitions = selected.partitions is not None and (
        selected.condition == subset.Description(selected.summary)
    )
    if selected.condition is not None and not names_partitions:
        selected = replace(selected, condition=_condition(selected.condition, hide))
    return replace(dataset, columns=columns, selected=selected)


def _condition(condition: subset.Condition, hide: Hide) -> subset.Condition:
    match condition:
        case subset.Partitions() | subset.Locations():
            return condition
        case subset.Compare():
            return replace(condition, value=HIDDEN)
        case subset.Description(text):
            return subset.Description(hide(text))
        case subset.Binary(operator, left, right):
            return subset.Binary(operator, _condition(left, hide), _condition(right, hide))
        case _:
            assert_never(condition)


# --- credentials ----------------------------------------------------------------------------------
#
# :mod:`~airflow_provider_sparklineage.model.credentials` recognises credentials; this module tells
# it which texts are names. A partition ``token=5`` is not a credential, so names lose only the
# credentials of a URL.


V = TypeVar("V")

_NAMES = IDENTITIES | {"identifier", "summary", "first", "last", "locations", "expected", "actual"}
"""Keys of names; beyond the identities, those of values that name a part of a dataset."""


def without_credentials(value: V) -> V:
    """Strip the credentials in all texts of an event, or of a part of one."""
    if is_unchanged(value, scrub):
        return value
    of_name, of_text = cache(scrub_name), cache(scrub)  # each edge repeats names and descriptions
    walk = Walk(lambda text, key: of_name(text) if key in _NAMES else of_text(text))
    stripped: V = walk.value(value)
    return stripped


# --- secrets --------------------------------------------------------------------------------------
#
# Airflow's own redactor works on attribute names: a column called ``password`` would lose its
# lineage, and the redactor needs half of the ten seconds after which Airflow drops an event for 16
# MB of column lineage. So the facets of this package make it skip them (:mod:`..openlineage`), and
# the secrets that Airflow masks in logs are masked here. Names of datasets and columns are
# identities and stay.


def masked(value: V, mask: Callable[[str], str]) -> V:
    """Mask the secrets in all texts of an event, or of a part of one, that are not names.

    :param mask: hides the secrets in a text
    """
    if mask is str or is_unchanged(value, mask):
        return value
    of_text = cache(mask)  # each edge repeats descriptions
    walk = Walk(lambda text, key: text if key in IDENTITIES else of_text(text))
    without: V = walk.value(value)
    return without


# --- long texts -----------------------------------------------------------------------------------
#
# - the deprecated ``transformationDescription`` of a column, of which Marquez holds 255 characters
# - templates of the partition check, around the expression that made the value


MAX_DESCRIPTION = 255
"""Marquez stores the deprecated field in a varchar(255)."""
MAX_TEMPLATE = 500
"""The most characters of a template in an event."""


def shortened(event: Event) -> Event:
    """Truncate the event's long texts."""
    return replaced(
        event,
        outputs=[_with_short_descriptions(d) for d in event["outputs"]],
        run_facets=_with_short_check(event["run"]["facets"]),
    )


def _with_short_descriptions(output: dict[str, Any]) -> dict[str, Any]:
    facet = output["facets"].get(COLUMNS_KEY)
    if facet is None:
        return output
    short = {
        column: field | {"transformationDescription": truncated(text, MAX_DESCRIPTION)}
        for column, field in facet["fields"].items()
        if len(text := field["transformationDescription"]) > MAX_DESCRIPTION
    }
    if not short:
        return output
    facets = output["facets"] | {COLUMNS_KEY: facet | {"fields": facet["fields"] | short}}
    return output | {"facets": facets}


def _with_short_check(facets: Facets) -> Facets:
    check = facets.get(CHECK_KEY)
    if check is None:
        return facets
    short = {
        side: [with_short_templates(entry) for entry in check[side]] for side in ("reads", "writes")
    }
    if all(short[side] == check[side] for side in short):
        return facets
    return facets | {CHECK_KEY: check | short}


def with_short_templates(entry: dict[str, Any]) -> dict[str, Any]:
    """Truncate the templates in an entry of the partition check; give a changed copy.

    :return: the same object if no template is too long
    """
    sources = entry.get("from", ())
    if all(len(source["template"]) <= MAX_TEMPLATE for source in sources):
        return entry
    return entry | {"from": [source | {"template": _excerpt(source)} for source in sources]}


def _excerpt(source: dict[str, Any]) -> str:
    """Give the template of a source, cut to ``MAX_TEMPLATE`` characters if it is longer.

    The excerpt is around the first of the source's expressions that the template has, else around
    the source's value, else it is the beginning.

    :param source: an entry of ``from`` in the partition check
    """
    template: str = source["template"]
    if len(template) <= MAX_TEMPLATE:
        return template
    found = (template.find(text) for text in (*source.get("expressions", ()), source["value"]))
    at = next((place for place in found if place >= 0), 0)
    start = max(0, min(at - MAX_TEMPLATE // 2, len(template) - MAX_TEMPLATE))
    end = start + MAX_TEMPLATE
    return f"{'…' if start else ''}{template[start:end]}{'…' if end < len(template) else ''}"
