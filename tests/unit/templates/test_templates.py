"""Tracing: which characters of a rendered template came from which execution date."""

from __future__ import annotations

import random
from collections import UserDict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from jinja2 import (
    ChainableUndefined,
    DictLoader,
    Environment,
    StrictUndefined,
    UndefinedError,
    nodes,
)
from jinja2.nativetypes import NativeEnvironment
from jinja2.sandbox import SandboxedEnvironment

from airflow_provider_sparklineage.templates import DATE_VARIABLES, TracedText, Tracer
from airflow_provider_sparklineage.templates.flow import TemplateFlow

BERLIN = ZoneInfo("Europe/Berlin")
PARTIALS = {
    "path.j2": "/lake/dt={{ ds }}",
    "macros.j2": "{% macro path(d) %}/lake/dt={{ d }}{% endmacro %}",
    "outer.j2": "{% include 'path.j2' %}",
}


def ds_add(ds, days):
    return (date.fromisoformat(ds) + timedelta(days=days)).isoformat()


def environment(kind=SandboxedEnvironment, **options):
    """Make an environment like Airflow's: its extension, its undefined, its filters."""
    options = {"undefined": StrictUndefined, "loader": DictLoader(PARTIALS)} | options
    made = kind(cache_size=0, extensions=["jinja2.ext.do"], **options)
    made.filters["ds"] = lambda value: value.strftime("%Y-%m-%d")
    made.filters["ds_nodash"] = lambda value: value.strftime("%Y%m%d")
    made.filters["quarter"] = lambda value: f"{value[:4]}Q{(int(value[5:7]) + 2) // 3}"
    return made


def trace(field, template, rendered, environment, context):
    return Tracer(environment, context).trace(field, template, rendered)


def trace_all(field, template, rendered, environment, context):
    return Tracer(environment, context).trace_all(field, template, rendered)


ENVIRONMENT = environment()
NATIVE = environment(NativeEnvironment)


class Variables:
    """Airflow's ``var.value``, where each look-up asks the API server: counts them."""

    def __init__(self, **values):
        self.values = values
        self.asked = 0

    def __getattr__(self, name):
        self.asked += 1
        return self.values[name]


def at(logical_date=datetime(2024, 5, 6, tzinfo=UTC), **more):
    """Make a context of a scheduled run, as far as templates of paths look into it."""
    ds = f"{logical_date:%Y}".zfill(4) + f"{logical_date:-%m-%d}"
    return {
        "ds": ds,
        "ds_nodash": ds.replace("-", ""),
        "ts": logical_date.isoformat(),
        "logical_date": logical_date,
        "data_interval_start": logical_date,
        "data_interval_end": logical_date + timedelta(days=1),
        "partition_key": None,
        "run_id": f"scheduled__{logical_date.isoformat()}",
        "params": {"region": "eu", "days": []},
        "macros": SimpleNamespace(
            ds_add=ds_add, datetime=datetime, timedelta=timedelta, random=random.random
        ),
        "dag_run": SimpleNamespace(logical_date=logical_date, conf={"day": "1"}),
        "ti": SimpleNamespace(task_id="revenue", xcom_pull=lambda _: "pulled"),
        **more,
    }


def traced(template, context=None, environment=ENVIRONMENT):
    """Render a template for real, and trace it."""
    context = at() if context is None else context
    rendered = environment.from_string(template).render(context)
    return trace("f", template, rendered, environment, context)


def described(text):
    """Give what each span is, of which expression, and of which dates."""
    return [(text.value[s.start : s.end], s.expression, s.dates) for s in text.spans]


def dated(text):
    """Give the characters that came from execution dates, in order."""
    return [text.value[s.start : s.end] for s in text.spans if s.dates]


# --- which characters -----------------------------------------------------------------------------


def test_the_characters_of_a_date_are_distinguished_from_the_templates_own():
    text = traced("s3://lake/orders/dt={{ ds }}/x")
    assert text == TracedText(
        field="f",
        template="s3://lake/orders/dt={{ ds }}/x",
        value="s3://lake/orders/dt=2024-05-06/x",
        spans=text.spans,
        variables=("ds",),
    )
    [span] = text.spans
    assert (span.start, span.end, span.expression) == (20, 30, "ds")
    assert span.variables == span.dates == ("ds",)


NEW_YEAR_1 = datetime(1, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TWENTY_THREE_HOURS = datetime(2024, 3, 31, tzinfo=BERLIN)
SECOND_TWO_O_CLOCK = datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN, fold=1)


@pytest.mark.parametrize(
    ("template", "logical_date", "expected"),
    [
        pytest.param("dt={{ ds }}", EPOCH, ["1970-01-01"], id="epoch"),
        pytest.param("dt={{ ds }}", NEW_YEAR_1, ["0001-01-01"], id="year 1"),
        pytest.param("dt={{ ds_nodash }}", EPOCH, ["19700101"], id="ds_nodash"),
        pytest.param("{{ ts }}", SECOND_TWO_O_CLOCK, ["2024-10-27T02:30:00+01:00"], id="25 hours"),
        pytest.param(
            "{{ data_interval_end.isoformat() }}",
            TWENTY_THREE_HOURS,
            ["2024-04-01T00:00:00+02:00"],
            id="23 hours",
        ),
        pytest.param(
            "{{ data_interval_start.astimezone(zone).strftime('%Y/%m/%d/%H') }}",
            datetime(2024, 5, 5, 23, tzinfo=UTC),
            ["2024/05/06/01"],
            id="another timezone",
        ),
        pytest.param(
            "year={{ logical_date.year }}/month={{ '%02d' % logical_date.month }}",
            EPOCH,
            ["1970", "01"],
            id="month of attributes",
        ),
        pytest.param(
            "dt={{ ds }}/hour={{ logical_date.strftime('%H') }}",
            EPOCH,
            ["1970-01-01", "00"],
            id="hour partition",
        ),
        pytest.param(
            "{{ logical_date.strftime('%G-W%V') }}", EPOCH, ["1970-W01"], id="week partition"
        ),
        pytest.param("{{ logical_date | ds }}", EPOCH, ["1970-01-01"], id="filter"),
        pytest.param(
            "{{ (logical_date - macros.timedelta(days=1)) | ds_nodash }}",
            EPOCH,
            ["19691231"],
            id="arithmetic",
        ),
        pytest.param("{{ dag_run.logical_date | ds }}", EPOCH, ["1970-01-01"], id="of the run"),
        pytest.param("{{ dag_run['logical_date'] | ds }}", EPOCH, ["1970-01-01"], id="as an item"),
        pytest.param("/{{ ds }}/to/{{ ds }}", EPOCH, ["1970-01-01"] * 2, id="two in one path"),
        pytest.param("{{ ds }}{{ ds_nodash }}", EPOCH, ["1970-01-01", "19700101"], id="adjacent"),
        pytest.param("{{- ds -}}  /x", EPOCH, ["1970-01-01"], id="whitespace control"),
        pytest.param("Zürich=Ä/{{ ds }}/日", EPOCH, ["1970-01-01"], id="unicode"),
        pytest.param("a=b%2Fc/dt={{ ds }}=", EPOCH, ["1970-01-01"], id="escapes"),
        pytest.param("{{ '}}' ~ ds ~ '{{' }}", EPOCH, ["1970-01-01"], id="braces in strings"),
        pytest.param("/dt={{ ds }}\n", EPOCH, ["1970-01-01"], id="Jinja drops the last newline"),
        pytest.param("{# {{ ds }} #}{{ ds }}", EPOCH, ["1970-01-01"], id="comment"),
        pytest.param("{% raw %}{{ ds }}{% endraw %}{{ ts[:4] }}", EPOCH, ["1970"], id="raw"),
        pytest.param("{% print ds %}", EPOCH, ["1970-01-01"], id="print"),
        pytest.param("{{ '/lake/dt=' + ds + '/x' }}", EPOCH, ["1970-01-01"], id="added texts"),
        pytest.param("{{ '/lake/dt=' ~ ds }}", EPOCH, ["1970-01-01"], id="concatenated"),
        pytest.param("{{ ds if ds else 'x' }}", EPOCH, ["1970-01-01"], id="conditional"),
        pytest.param("{{ nope | default(ds) }}", EPOCH, ["1970-01-01"], id="default"),
        pytest.param("{{ partition_key or ds }}", EPOCH, ["1970-01-01"], id="any kind of run"),
    ],
)
def test_dates_of_all_forms_are_found(template, logical_date, expected):
    text = traced(template, at(logical_date, zone=BERLIN))
    assert dated(text) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param("{% set d = ds %}dt={{ d }}", ["2024-05-06"], id="set"),
        pytest.param("{% set a, b = ds, 'x' %}{{ a }}", ["2024-05-06"], id="unpacked"),
        pytest.param("{% set a = ds %}{% set b = a %}{{ b }}", ["2024-05-06"], id="twice"),
        pytest.param("{% set b %}x/{{ ds }}{% endset %}{{ b }}", ["2024-05-06"], id="set block"),
        pytest.param("{% with d = ds %}{{ d }}{% endwith %}", ["2024-05-06"], id="with"),
        pytest.param("{% if ds > '2' %}a{{ ds }}{% endif %}", ["2024-05-06"], id="if"),
        pytest.param(
            "{% for i in range(7) %}/d={{ macros.ds_add(ds, -i) }},{% endfor %}",
            [f"2024-0{'5-0' if d > 0 else '4-'}{d if d > 0 else 30 + d}" for d in range(6, -1, -1)],
            id="seven days",
        ),
        pytest.param(
            "{% for d in [ds, ts] %}{{ loop.index }}{{ d[:4] }}{% endfor %}",
            ["2024", "2024"],
            id="for over dates, its index is none",
        ),
        pytest.param(
            "{% set days = [] %}{% for i in (0, 1) %}{% do days.append(macros.ds_add(ds, i)) %}"
            "{% endfor %}{{ days | join(',') }}",
            ["2024-05-06,2024-05-07"],
            id="list that is filled",
        ),
        pytest.param(
            "{% set n = namespace(d='') %}{% for i in (1,) %}{% set n.d = ds %}{% endfor %}"
            "{{ n.d }}",
            ["2024-05-06"],
            id="namespace",
        ),
        pytest.param(
            "{% macro path(d) %}/lake/dt={{ d }}{% endmacro %}{{ path(ds) }},{{ path(d=ts[:4]) }}",
            ["2024-05-06", "2024"],
            id="macro",
        ),
        pytest.param(
            "{% macro path(d) %}/lake/dt={{ d }}{% endmacro %}{{ path(d=ds) }}",
            ["2024-05-06"],
            id="keyword of a macro",
        ),
        pytest.param(
            "{% macro path(d) %}/lake/dt={{ d }}{% endmacro %}{{ path(*[ds]) }}",
            ["2024-05-06"],
            id="unpacked arguments of a macro",
        ),
        pytest.param(
            "{{ [ds] | map('upper') | select('string') | map(attribute='x') | list | length }}"
            "{{ [ds] | map('upper') | select('string') | first }}",
            ["1", "2024-05-06"],
            id="mapped filters",
        ),
        pytest.param(
            "{% macro path(d=ds) %}/lake/dt={{ d }}{% endmacro %}{{ path() }}",
            ["2024-05-06"],
            id="default of a macro",
        ),
        pytest.param(
            "{% macro all() %}{{ varargs | join }}{% endmacro %}{{ all('x', ds) }}",
            ["x2024-05-06"],
            id="varargs",
        ),
        pytest.param(
            "{% macro m() %}<{{ caller(ds) }}>{% endmacro %}"
            "{% call(d) m() %}dt={{ d }}{% endcall %}",
            ["2024-05-06"],
            id="call block",
        ),
        pytest.param(
            "{% filter upper %}/dt={{ ds }}t{% endfilter %}", ["2024-05-06"], id="filter block"
        ),
        pytest.param(
            "{% filter replace('1', '2') %}{{ 1 }}{{ ts[:4] }}{{ 1 }}{% endfilter %}",
            ["2024"],
            id="filter that replaces digits",
        ),
    ],
)
def test_dates_are_followed_through_the_names_that_a_template_makes(template, expected):
    assert dated(traced(template)) == expected


def test_what_a_template_makes_itself_is_not_taken_for_the_variable_of_that_name():
    text = traced("{% for ds in ['2020-01-01'] %}{{ ds }}{% endfor %}")
    assert described(text) == [("2020-01-01", "ds", ())]
    assert text.variables == ()


def test_a_name_that_is_set_only_sometimes_may_be_the_variable():
    text = traced("{% if params.region == 'us' %}{% set ds = 'x' %}{% endif %}{{ ds }}")
    assert dated(text) == ["2024-05-06"]


def test_an_expression_is_reported_as_it_is_in_the_template():
    text = traced("{{ macros.ds_add( ds, -6 ) }}/{{- params.region }}")
    assert [(s.expression, s.variables) for s in text.spans] == [
        ("macros.ds_add( ds, -6 )", ("ds", "macros")),
        ("params.region", ("params",)),
    ]


def test_what_a_filter_makes_of_a_macro_is_all_of_the_expression():
    text = traced("{% macro p(d) %}a{{ d }}b{% endmacro %}{{ p(ds) | upper }}")
    assert [c for c, _, dates in described(text) if dates == ("ds",)] == ["A", "2024-05-06", "B"]


def test_an_expression_that_makes_nothing_has_an_empty_span():
    text = traced("dt={{ partition_key or '' }}/x")
    assert described(text) == [("", "partition_key or ''", ("partition_key",))]


def test_none_is_text_as_jinja_renders_it():
    text = traced("dt={{ partition_key }}")
    assert described(text) == [("None", "partition_key", ("partition_key",))]


def test_a_partition_run_has_its_key_and_no_ds():
    context = {"partition_key": "2024-05-06|eu", "run_id": "r"}
    text = traced("{{ partition_key.split('|')[0] }}/{{ partition_key.split('|')[1] }}", context)
    assert dated(text) == ["2024-05-06", "eu"]


@pytest.mark.parametrize(
    ("template", "variables"),
    [
        pytest.param("/lake/orders", (), id="no template"),
        pytest.param("", (), id="empty"),
        pytest.param("{{ params.region }}", (), id="no date"),
        pytest.param("{{ run_id }}", (), id="the run's id is no date"),
        pytest.param("{{ 'ds' }}", (), id="quoted name"),
        pytest.param("{% if ds > '2' %}a{% endif %}", ("ds",), id="a date only decides"),
        pytest.param("{{ dag_run.conf.day }}", (), id="conf of the run"),
    ],
)
def test_texts_without_a_date_have_no_dated_characters(template, variables):
    text = traced(template)
    assert (dated(text), text.variables) == ([], variables)


def test_all_date_variables_are_dates():
    for name in DATE_VARIABLES:
        root, _, attribute = name.partition(".")
        context = {root: SimpleNamespace(**{attribute: "x"}) if attribute else "x"}
        assert described(traced(f"/{{{{ {name} }}}}", context)) == [("x", name, (name,))]


# --- what is not evaluated again ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param(
            "s3://{{ var.bucket }}/dt={{ ds }}",
            [("lake", ("var",)), ("2024-05-06", ("ds",))],
            id="before the date",
        ),
        pytest.param(
            "{{ ds }}{{ var.bucket }}", [("2024-05-06", ("ds",)), ("lake", ("var",))], id="after it"
        ),
        pytest.param("{{ var.bucket }}", [("lake", ("var",))], id="alone"),
        pytest.param(
            "{{ var.bucket }}{{ var.prefix }}/dt={{ ds }}",
            [("lakea/b", ("var",)), ("2024-05-06", ("ds",))],
            id="two that cannot be distinguished",
        ),
        pytest.param(
            "{{ var.bucket }}/{{ var.prefix }}/dt={{ ds }}",
            [("lake/a/b", ("var",)), ("2024-05-06", ("ds",))],
            id="two with a slash that is ambiguous",
        ),
        pytest.param(
            "{{ var.bucket }}://{{ var.prefix }}/dt={{ ds }}",
            [("lake", ("var",)), ("a/b", ("var",)), ("2024-05-06", ("ds",))],
            id="two that can be distinguished",
        ),
        pytest.param(
            "{% set b = var.bucket %}{{ b }}/{{ ds }}",
            [("lake", ("var",)), ("2024-05-06", ("ds",))],
            id="by way of a name",
        ),
        pytest.param(
            "{{ var.bucket ~ '/dt=' ~ ds }}",
            [("lake", ("var",)), ("2024-05-06", ("ds",))],
            id="concatenated",
        ),
        pytest.param(
            "{% for i in (1, 2) %}{{ i }}:{{ var.bucket }};{% endfor %}",
            [("1", ()), ("lake", ("var",)), ("2", ()), ("lake", ("var",))],
            id="in a loop",
        ),
    ],
)
def test_a_variable_of_airflow_is_not_asked_for_again(template, expected):
    variables = Variables(bucket="lake", prefix="a/b")
    context = at(var=variables)
    rendered = ENVIRONMENT.from_string(template).render(context)
    asked = variables.asked
    text = trace("f", template, rendered, ENVIRONMENT, context)
    assert [(text.value[s.start : s.end], s.variables) for s in text.spans] == expected
    assert variables.asked == asked > 0


@pytest.mark.parametrize(
    ("template", "dates"),
    [
        pytest.param("{% if var.bucket %}{{ ds }}{% endif %}", ("ds",), id="condition"),
        pytest.param("{% for c in var.bucket %}{{ c }}{% endfor %}{{ ds }}", ("ds",), id="loop"),
        pytest.param("{% do var.bucket.upper() %}{{ ds }}", ("ds",), id="statement"),
        pytest.param(
            "{% filter replace('l', var.bucket) %}{{ ds }}{% endfilter %}", ("ds",), id="filter"
        ),
        pytest.param(
            "{% filter upper %}{{ var.bucket }}{{ ds }}{% endfilter %}",
            ("ds",),
            id="inside a filter",
        ),
        pytest.param(
            "{% set x %}{{ var.bucket }}{% endset %}{{ x }}{{ ds }}", ("ds",), id="inside a block"
        ),
    ],
)
def test_where_that_decides_on_more_only_the_dates_are_known(template, dates):
    variables = Variables(bucket="lake")
    context = at(var=variables)
    rendered = ENVIRONMENT.from_string(template).render(context)
    asked = variables.asked
    text = trace("f", template, rendered, ENVIRONMENT, context)
    assert (text.spans, text.variables) == ((), dates)
    assert variables.asked == asked


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("{% do params.days.append(ds) %}{{ ds }}", id="append"),
        pytest.param("{% do params['days'].append(ds) %}{{ ds }}", id="of an item"),
        pytest.param("{% do params['days']['append'](ds) %}{{ ds }}", id="method as an item"),
        pytest.param("{% set d = params.days %}{% do d.append(ds) %}{{ ds }}", id="alias"),
        pytest.param("{% set d = [params.days] %}{% do d[0].append(ds) %}{{ ds }}", id="in a list"),
        pytest.param("{% set f = params.days.append %}{{ f(ds) }}", id="bound method"),
        pytest.param("{% do (params.days | attr('append'))(ds) %}{{ ds }}", id="attr filter"),
        pytest.param("{{ params.days.append(ds) }}{{ ds }}", id="output"),
        pytest.param("{{ params.days.__iadd__([ds]) }}{{ ds }}", id="special method"),
        pytest.param(
            "{% macro m(l) %}{% do l.append(1) %}{% endmacro %}{{ m(params.days) }}", id="macro"
        ),
        pytest.param("{% for l in [params.days] %}{% do l.append(1) %}{% endfor %}", id="loop"),
    ],
)
def test_what_a_template_changes_is_changed_once(template):
    context = at()
    text = traced(
        template, context, environment(Environment)
    )  # as Airflow's native one: no sandbox
    assert len(context["params"]["days"]) == 1
    assert set(text.variables) <= {"ds"}


@pytest.mark.parametrize(
    "method", sorted(n for n in vars(set).keys() - vars(frozenset).keys() if n[0] != "_")
)
def test_what_a_template_changes_in_a_set_is_changed_once(method):
    argument = {"clear": "", "pop": ""}.get(method, "'a'")
    template = f"{{{{ params.kept.{method}({argument}) }}}}{{{{ params.kept.add('b') }}}}"
    context = {"params": {"kept": {"a"}}}
    rendered = environment(Environment).from_string(template).render(context)
    known = set(context["params"]["kept"])
    trace("f", template, rendered, environment(Environment), context)
    assert context["params"]["kept"] == known


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("{{ macros.random() }}", id="random"),
        pytest.param("{{ [1, 2, 3, 4, 5, 6, 7, 8, 9] | random }}", id="random filter"),
        pytest.param("{{ macros.datetime.now() }}", id="clock"),
        pytest.param("{{ logical_date.now() }}", id="clock by way of a date"),
        pytest.param("{{ lipsum() }}", id="random words"),
        pytest.param("{{ counter() }}", id="function of the user"),
        pytest.param("{{ ti.xcom_pull('orders') }}", id="xcom"),
        pytest.param("{{ ds | count_calls }}", id="filter of the user"),
        pytest.param("{{ [ds] | map('count_calls') | first }}", id="mapped filter of the user"),
        pytest.param("{{ ds | upper }}", id="filter of the user by a name of Jinja's"),
        pytest.param("{{ [ds] | map('upper') | first }}", id="the same, mapped"),
        pytest.param("{{ [ds] | select('count_calls') | first }}", id="selected by the user's"),
        pytest.param("{{ [ds] | map(*['count_calls']) | first }}", id="unpacked argument"),
        pytest.param("{{ 'x' if ds is count_calls }}", id="test of the user"),
    ],
)
def test_what_may_differ_or_count_is_not_evaluated_again(template):
    calls = []
    context = at(counter=lambda: calls.append(1) or str(len(calls)))
    ours = environment()
    ours.filters["upper"] = ours.filters["count_calls"] = lambda value: calls.append(1) or value
    ours.tests["count_calls"] = lambda _: not calls.append(1)
    text = traced(f"<{template}>{{{{ ds }}}}", context, ours)
    assert [text.value[s.start : s.end] for s in text.spans] == [
        text.value[1:-11],
        "2024-05-06",
    ]
    assert len(calls) <= 1


def test_a_function_of_the_user_on_a_date_is_of_that_date():
    ours = environment()
    ours.globals["week"] = lambda ds: f"{ds}-week"
    ours.globals["bucket"] = "lake"
    text = traced("/{{ bucket }}/{{ week(ds) }}/{{ ds | quarter }}", None, ours)
    assert described(text) == [
        ("lake", "bucket", ()),
        ("2024-05-06-week", "week(ds)", ("ds",)),
        ("2024Q2", "ds | quarter", ("ds",)),
    ]


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "rendered", "variables"),
    [
        pytest.param("{{ ds }}", "2020-01-01", ("ds",), id="another text"),
        pytest.param("{{ ds }", "{{ ds ", (), id="no template"),
        pytest.param("{{ ds", "x", (), id="syntax error"),
        pytest.param("{{ nope }}{{ ds }}", "x", ("ds",), id="undefined"),
        pytest.param("{{ 1 / 0 }}{{ ds }}", "x", ("ds",), id="error in an expression"),
        pytest.param("{{ ds | nope }}{% if ds | nope %}{% endif %}", "x", ("ds",), id="filter"),
        pytest.param("{{ ds }}", None, ("ds",), id="None"),
        pytest.param("{{ ds }}", 5, ("ds",), id="number"),
        pytest.param("{{ self.nope() }}{{ ds }}", "x", ("ds",), id="self"),
        pytest.param(
            "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}{{ ds }}",
            "x",
            ("ds",),
            id="endless recursion",
        ),
        pytest.param("{{ " + "(" * 5000 + "ds" + ")" * 5000 + " }}", "x", (), id="deep nesting"),
        pytest.param("{{ ds" + " ~ ds" * 1500 + " }}", "x", ("ds",), id="long expression"),
        pytest.param(
            "{% for d in ['x'] recursive %}{{ d }}{{ loop([ds]) if d == 'x' }}{% endfor %}",
            "x2024-05-06",
            ("ds",),
            id="recursive loop",
        ),
        pytest.param(
            "{% macro m() %}{% set f = caller %}{{ f(ds) }}{% endmacro %}"
            "{% call(d) m() %}{{ d }}{% endcall %}",
            "2024-05-06",
            ("ds",),
            id="caller by another name",
        ),
        pytest.param(
            "{% macro m(d) %}{{ d }}{% endmacro %}{% set f = m %}{{ f(ds) }}",
            "2024-05-06",
            ("ds",),
            id="macro by another name",
        ),
        pytest.param("{% filter length %}{{ ds }}{% endfilter %}", "10", ("ds",), id="length"),
        pytest.param(
            "{% filter reverse %}{{ ds }}{% endfilter %}", "60-50-4202", ("ds",), id="reverse"
        ),
        pytest.param(
            "{% filter reverse %}{{ 1 }}{{ ds[:0] }}{{ 1 }}{% endfilter %}",
            "11",
            ("ds",),
            id="reversed to the same",
        ),
        pytest.param("{% set b %}{{ ds }}{% endset %}{{ b[:4] }}", "2024", ("ds",), id="slice"),
        pytest.param(
            "\U000f0000{{ ds }}", "\U000f00002024-05-06", ("ds",), id="markers in the template"
        ),
        pytest.param(
            "{{ evil }}{{ ds }}", "\U000f00012024-05-06", ("ds",), id="markers in a value"
        ),
        pytest.param(
            "{{ pair }}{{ ds }}", "\U000f0001\U001000012024-05-06", ("ds",), id="paired markers"
        ),
    ],
)
def test_where_the_text_is_not_understood_only_the_dates_are_known(template, rendered, variables):
    context = at(evil="\U000f0001", pair="\U000f0001\U00100001")
    text = trace("f", template, rendered, ENVIRONMENT, context)
    expected = TracedText("f", template, str(rendered), (), variables)
    assert text == expected


class Unprintable:
    def __str__(self):
        raise ValueError


def test_what_cannot_be_printed_has_no_text():
    template = "{{ params.x }}{{ ds }}"
    assert trace("f", template, Unprintable(), ENVIRONMENT, at()).value == ""
    context = at(params={"x": Unprintable()})
    assert trace("f", template, "y", ENVIRONMENT, context).variables == ("ds",)


def test_an_interrupt_is_not_swallowed():
    class Interrupt(BaseException):
        pass

    class Late:
        def __str__(self):
            raise Interrupt

    with pytest.raises(Interrupt):
        trace("f", "{{ params.x }}", "y", ENVIRONMENT, at(params={"x": Late()}))


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("{% include 'path.j2' %}", id="include"),
        pytest.param("{% include 'outer.j2' %}", id="include of an include"),
        pytest.param("{% extends 'path.j2' %}", id="extends"),
        pytest.param("{% from 'macros.j2' import path %}{{ path(ds) }}", id="imported macro"),
        pytest.param("{% import 'macros.j2' as m %}{{ m.path(ds) }}", id="imported module"),
    ],
)
def test_of_other_templates_only_the_dates_are_known(template):
    text = traced(template)
    assert (text.value, text.spans, text.variables) == ("/lake/dt=2024-05-06", (), ("ds",))


def test_templates_that_include_each_other_are_read_once():
    loader = DictLoader({"a": "{{ ds }}{% include 'b' %}", "b": "{% include 'a' %}"})
    text = trace("f", "{% include 'a' %}", "x", environment(loader=loader), at())
    assert text.variables == ("ds",)


def test_a_text_that_was_not_rendered_has_no_dates():
    text = trace("f", "{{ ds }}", "{{ ds }}", ENVIRONMENT, at())
    assert text == TracedText("f", "{{ ds }}", "{{ ds }}")


def test_a_huge_template_is_traced():
    text = traced("x" * 200_000 + "{{ ds }}" + "{% for i in range(4000) %}{{ ds }},{% endfor %}")
    assert len(dated(text)) == 4_001


@pytest.mark.parametrize(
    ("ours", "template", "expected"),
    [
        pytest.param(environment(Environment), "<{{ ds }}", ["2024-05-06"], id="no sandbox"),
        pytest.param(
            environment(autoescape=True),
            "<{{ ds ~ '&' }}{{ '<' }}",
            ["2024-05-06"],
            id="autoescape",
        ),
        pytest.param(
            environment(variable_start_string="<<", variable_end_string=">>"),
            "{{ ds }}/<< ds >>",
            ["2024-05-06"],
            id="other delimiters",
        ),
        pytest.param(
            environment(line_statement_prefix="%%"),
            "%% set d = ds\n{{ d }}",
            ["2024-05-06"],
            id="line statements",
        ),
        pytest.param(
            environment(undefined=ChainableUndefined),
            "{{ nope.x }}{{ ds }}",
            ["2024-05-06"],
            id="lenient",
        ),
        pytest.param(
            environment(finalize=lambda v: "" if v is None else v),
            "{{ partition_key }}/{{ ds }}",
            ["", "2024-05-06"],
            id="finalize",
        ),
        pytest.param(
            environment(trim_blocks=True, keep_trailing_newline=True),
            "{% if 1 %}\n{{ ds }}\n{% endif %}\n",
            ["2024-05-06"],
            id="trim blocks",
        ),
    ],
)
def test_environments_of_all_kinds_are_traced(ours, template, expected):
    assert dated(traced(template, None, ours)) == expected


# --- native rendering -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "rendered", "expected"),
    [
        pytest.param("dt={{ ds }}", "dt=2024-05-06", ["2024-05-06"], id="text"),
        pytest.param("{{ ds_nodash }}", 20240506, ["20240506"], id="number"),
        pytest.param("'{{ ds }}'", "2024-05-06", ["2024-05-06"], id="quoted text"),
        pytest.param(
            "{{ logical_date }}",
            datetime(2024, 5, 6, tzinfo=UTC),
            ["2024-05-06 00:00:00+00:00"],
            id="date",
        ),
    ],
)
def test_what_native_rendering_makes_of_one_text_is_traced(template, rendered, expected):
    assert NATIVE.from_string(template).render(at()) == rendered
    assert dated(trace("f", template, rendered, NATIVE, at())) == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        pytest.param(
            "{{ ['--day', ds] }}",
            [("f[0]", "--day", ["--day"]), ("f[1]", "2024-05-06", ["2024-05-06"])],
            id="list of one expression",
        ),
        pytest.param(
            "[1, '1', \"dt={{ ds }}\", '{{ ds_nodash }}']",
            [
                ("f[1]", "1", []),
                ("f[2]", "dt=2024-05-06", ["2024-05-06"]),
                ("f[3]", "20240506", ["20240506"]),
            ],
            id="literal of a list",
        ),
        pytest.param(
            "{'2024-05-06': '{{ ds }}', 'b': 'b'}",
            [("f[2024-05-06]", "2024-05-06", ["2024-05-06"]), ("f[b]", "b", [])],
            id="keys are none",
        ),
        pytest.param(
            "['{{ ds }}\\n', '{{ ds }}']",
            [("f[0]", "2024-05-06\n", []), ("f[1]", "2024-05-06", ["2024-05-06"])],
            id="escapes are not located",
        ),
    ],
)
def test_texts_in_what_native_rendering_makes_are_traced(template, expected):
    rendered = NATIVE.from_string(template).render(at())
    texts = trace_all("f", template, rendered, NATIVE, at())
    assert [(t.field, t.value, dated(t)) for t in texts] == expected
    assert all(t.template == template and "ds" in t.variables for t in texts)


def test_a_list_that_is_not_what_the_template_makes_has_no_spans():
    texts = trace_all("f", "['{{ ds }}', 'a']", ["2024-05-06", "b"], NATIVE, at())
    assert texts == [
        TracedText("f[0]", "['{{ ds }}', 'a']", "2024-05-06", (), ("ds",)),
        TracedText("f[1]", "['{{ ds }}', 'a']", "b", (), ("ds",)),
    ]


# --- containers -----------------------------------------------------------------------------------


def all_traced(template, rendered, context=None):
    texts = trace_all("f", template, rendered, ENVIRONMENT, at() if context is None else context)
    return [(t.field, t.value, dated(t)) for t in texts]


@dataclass(frozen=True)
class Subset:
    """A declaration that renders to a new value and keeps what it was made of."""

    uri: str
    partitions: dict[str, str] = field(default_factory=dict)
    maximum: int = 5
    template: Subset | None = None


DAY = "2024-05-06"


@pytest.mark.parametrize(
    ("template", "rendered", "expected"),
    [
        pytest.param([], [], [], id="empty"),
        pytest.param(None, None, [], id="nothing"),
        pytest.param(
            ["a", "{{ ds }}"], ["a", DAY], [("f[0]", "a", []), ("f[1]", DAY, [DAY])], id="list"
        ),
        pytest.param(("{{ ds }}",), (DAY,), [("f[0]", DAY, [DAY])], id="tuple"),
        pytest.param(
            {"{{ ds }}": "{{ ds }}"},
            {"{{ ds }}": DAY},
            [("f[{{ ds }}]", DAY, [DAY])],
            id="keys are not rendered",
        ),
        pytest.param(UserDict({"a": "{{ ds }}"}), {"a": DAY}, [("f[a]", DAY, [DAY])], id="mapping"),
        pytest.param(
            {1: "{{ ds }}", "1": "x"},
            {1: DAY, "1": "x"},
            [("f[1]", DAY, [DAY]), ("f[1]", "x", [])],
            id="keys that look alike",
        ),
        pytest.param(
            {"a": [("{{ ds }}", 1)]}, {"a": [(DAY, 1)]}, [("f[a][0][0]", DAY, [DAY])], id="nested"
        ),
        pytest.param(
            {"b", "{{ ds }}"}, {"b", DAY}, [("f[0]", DAY, [DAY]), ("f[1]", "b", [])], id="set"
        ),
        pytest.param(
            {"{{ ds }}", "{{ ts[:10] }}"},
            {DAY},
            [("f[0]", DAY, [])],
            id="set that may be of either",
        ),
        pytest.param(
            ["{{ ds }}"], ["a", "b"], [("f[0]", "a", []), ("f[1]", "b", [])], id="another length"
        ),
        pytest.param({"a": "{{ ds }}"}, {"b": "x"}, [("f[b]", "x", [])], id="another key"),
        pytest.param(["{{ ds }}"], "x", [("f", "x", [])], id="another shape"),
        pytest.param(
            object(), "{{ ds }}", [("f", "{{ ds }}", [])], id="reference to an upstream task"
        ),
        pytest.param(
            [object()], [["a", 1]], [("f[0][0]", "a", [])], id="reference that gives a list"
        ),
        pytest.param([1, None], [1, None], [], id="no texts"),
        pytest.param(
            [Subset("/lake/{{ params.region }}", {"dt": "{{ ds }}"})],
            [
                Subset(
                    "/lake/eu",
                    {"dt": DAY},
                    template=Subset("/lake/{{ params.region }}", {"dt": "{{ ds }}"}),
                )
            ],
            [("f[0].uri", "/lake/eu", []), ("f[0].partitions[dt]", DAY, [DAY])],
            id="dataclass",
        ),
    ],
)
def test_templates_and_values_are_walked_together(template, rendered, expected):
    assert all_traced(template, rendered) == expected


def test_an_object_that_rendering_left_alone_is_no_template():
    same = Subset("{{ ds }}")
    assert trace_all("f", [same], [same], ENVIRONMENT, at()) == [
        TracedText("f[0].uri", "{{ ds }}", "{{ ds }}")
    ]


def test_a_list_that_contains_itself_is_given_up():
    template, rendered = ["{{ ds }}"], [DAY]
    template.append(template)
    rendered.append(rendered)
    assert trace_all("f", template, rendered, ENVIRONMENT, at()) == []


def test_a_set_of_which_either_template_may_be_the_one_has_the_dates_of_both():
    [text] = trace_all("f", {"{{ ds }}", "{{ ts[:10] }}"}, {DAY}, ENVIRONMENT, at())
    assert text.variables == ("ds", "ts")


def test_tracing_changes_neither_templates_nor_context():
    template, context = {"a": ["{{ ds }}"]}, at()
    before = dict(context)
    trace_all("f", template, {"a": [DAY]}, ENVIRONMENT, context)
    assert template == {"a": ["{{ ds }}"]}
    assert context == before


# --- laws -----------------------------------------------------------------------------------------

WORDS = (
    "{{ }} {% %} ds ~ | upper if endif for in endfor set = macro endmacro ( ) , 'a' var . ti raw "
    "endraw filter endfilter do {# #} [ ] : d call endcall block \U000f0000"
)
LITERALS = st.text("ab/=%2F.é日-05 ", max_size=6).filter(lambda text: "{" not in text)
SEGMENTS = st.one_of(
    st.tuples(st.just(False), LITERALS, LITERALS),
    st.sampled_from(
        [
            (True, "{{ ds }}", "2024-05-06"),
            (True, "{{ ds_nodash }}", "20240506"),
            (True, "{{ macros.ds_add(ds, 1) }}", "2024-05-07"),
            (True, "{{ logical_date.strftime('%H') }}", "00"),
            (True, "{{ partition_key or '' }}", ""),
            (True, "{% set d = ds %}{{ d }}", "2024-05-06"),
            (True, "{% if ds %}{{ ds }}{% endif %}", "2024-05-06"),
            (False, "{% if not ds %}x{% endif %}", ""),
            (False, "{# {{ ds }} #}", ""),
            (False, "{% raw %}{{ ds }}{% endraw %}", "{{ ds }}"),
        ]
    ),
)


@settings(deadline=None)  # compiling a template takes as long as the machine is busy
@given(st.lists(SEGMENTS.map(lambda p: (p[0], p[1], p[2] if p[0] or "{" in p[1] else p[1]))))
def test_spans_are_exactly_the_characters_that_expressions_made(segments):
    template = "".join(text for _, text, _ in segments)
    value = "".join(made for _, _, made in segments)
    text = trace("f", template, value, ENVIRONMENT, at())
    expected, place = [], 0
    for is_expression, _, made in segments:
        if is_expression:
            expected.append((place, place + len(made)))
        place += len(made)
    assert [(s.start, s.end) for s in text.spans] == expected
    assert text.value == value


EXPRESSIONS = st.recursive(
    st.sampled_from(
        ["ds", "ds_nodash", "macros.ds_add(ds, -1)", "params.region", "'x'", "a", "b", "c", "n.x"]
    ),
    lambda inner: st.one_of(
        inner.map("({}) | upper".format),
        st.tuples(inner, inner).map(" ~ ".join),
        st.tuples(inner, inner).map(lambda two: "'-' + {} ~ {}".format(*two)),
        st.tuples(inner, inner).map(lambda two: "[{}, {}] | join('+')".format(*two)),
        st.tuples(inner, inner).map(lambda two: "{} or {}".format(*two)),
        inner.map("m({})".format),
        inner.map("m(q={})".format),
        inner.map("m('x', {})".format),
    ),
    max_leaves=3,
)
NAMES = st.sampled_from("abc")


def statements(inner):
    """Give the statements of Jinja that make names or contain text, around others."""
    body = st.lists(inner, max_size=3).map("".join)
    return st.one_of(
        st.tuples(NAMES, EXPRESSIONS, EXPRESSIONS, body).map(
            lambda t: "{{% for {} in [{}, {}] %}}{}{{% endfor %}}".format(*t)
        ),
        st.tuples(NAMES, EXPRESSIONS, body).map(
            lambda t: "{{% with {} = {} %}}{}{{% endwith %}}".format(*t)
        ),
        st.tuples(NAMES, body).map(lambda t: "{{% set {} %}}{}{{% endset %}}".format(*t)),
        st.tuples(NAMES, body).map(lambda t: "{{% set {} | lower %}}{}{{% endset %}}".format(*t)),
        body.map("{{% filter upper %}}{}{{% endfilter %}}".format),
        body.map("{{% if params.region %}}{}{{% endif %}}".format),
        st.tuples(EXPRESSIONS, body).map(
            lambda t: "{{% call(c) w({}) %}}{}{{{{ c }}}}{{% endcall %}}".format(*t)
        ),
    )


STATEMENTS = st.recursive(
    st.one_of(
        st.sampled_from(["/lake/", "dt=", "日"]),
        EXPRESSIONS.map("{{{{ {} }}}}".format),
        st.tuples(NAMES, EXPRESSIONS).map(lambda t: "{{% set {} = {} %}}".format(*t)),
        EXPRESSIONS.map("{{% set n.x = {} %}}".format),
    ),
    statements,
    max_leaves=8,
)
MACROS = (
    "{% set n = namespace(x='') %}{% macro m(p, q=ds_nodash) %}<{{ p }}{{ q }}>{% endmacro %}"
    "{% macro w(p) %}[{{ caller(p) }}]{% endmacro %}"
)
LENIENT = environment(undefined=ChainableUndefined)


@settings(max_examples=12, deadline=None)
@given(st.lists(STATEMENTS, min_size=1, max_size=4).map(lambda texts: MACROS + "".join(texts)))
def test_another_date_changes_dated_characters_only(template):
    def frame(logical_date):
        try:
            text = traced(template, at(logical_date), LENIENT)
        except UndefinedError:  # '-' + a name that has nothing yet
            reject()
        if not text.spans and text.variables:
            return None  # not understood, and reported as such
        ends = [(s.start, s.end) for s in text.spans if s.dates]
        between = zip([0, *(end for _, end in ends)], [*(s for s, _ in ends), None], strict=True)
        return [text.value[a:b] for a, b in between]

    assert frame(datetime(2024, 5, 6, tzinfo=UTC)) == frame(datetime(1999, 12, 31, tzinfo=UTC))


def test_the_tree_of_a_template_is_walked_once(mocker):
    tree = ENVIRONMENT.parse("{{ ds }}/" * 10)
    walked = mocker.spy(nodes.Template, "find_all")
    TemplateFlow(tree, ENVIRONMENT, at())
    assert walked.call_count == 1


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(WORDS.split()),
        max_size=25,
    ).map(" ".join),
    st.one_of(st.none(), st.text(), st.just("2024-05-06")),
)
def test_nothing_is_raised_whatever_the_template(template, rendered):
    context = at(var=Variables())
    text = trace("f", template, rendered, ENVIRONMENT, context)
    assert text.value == str(rendered)
    assert all(0 <= s.start <= s.end <= len(text.value) for s in text.spans)


@settings(deadline=None)
@given(st.lists(st.text("a/b", max_size=4), min_size=1, max_size=4), st.text("a/b", max_size=3))
def test_the_value_of_a_variable_is_never_taken_for_a_date(values, separator):
    names = {f"v{n}": value for n, value in enumerate(values)}
    template = separator.join(f"{{{{ var.{name} }}}}" for name in names) + "/{{ ds }}"
    text = traced(template, at(var=Variables(**names)))
    assert [(s.start, s.end) for s in text.spans if s.dates] == [
        (len(text.value) - 10, len(text.value))
    ]
