"""A template taken apart renders to what it renders to as a whole, and compiles less."""

from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2 import StrictUndefined
from jinja2.ext import Extension
from jinja2.nativetypes import NativeEnvironment
from jinja2.sandbox import SandboxedEnvironment

from airflow_provider_sparklineage.templates.again import Again, Renderer
from tests.unit.templates.test_templates import ENVIRONMENT, NATIVE, Variables, at, environment


class Shouting(Extension):
    """Changes the text of templates before they are parsed."""

    def preprocess(self, source, name, filename=None):  # noqa: ARG002
        return source.replace("s3", "S3").replace("{{ ds }}", "{{ ts }}")


ENVIRONMENTS = {
    "Airflow's": ENVIRONMENT,
    "native": NATIVE,
    "strict": SandboxedEnvironment(undefined=StrictUndefined),
    "strict and native": NativeEnvironment(undefined=StrictUndefined),
    "escaping": SandboxedEnvironment(autoescape=True),
    "escaping by name": SandboxedEnvironment(autoescape=lambda name: name is None),
    "finalizing": SandboxedEnvironment(finalize=lambda value: "-" if value is None else value),
    "other delimiters": SandboxedEnvironment(
        variable_start_string="<<", variable_end_string=">>", newline_sequence="\r\n"
    ),
    "keeping ends": SandboxedEnvironment(keep_trailing_newline=True, trim_blocks=True),
    "extended": SandboxedEnvironment(extensions=["jinja2.ext.do"]),
    "changing texts": SandboxedEnvironment(extensions=[Shouting]),
    "translated": SandboxedEnvironment(extensions=["jinja2.ext.i18n", "jinja2.ext.loopcontrols"]),
    "by lines": SandboxedEnvironment(line_statement_prefix="%", line_comment_prefix="##"),
}
EXPRESSIONS = [
    *("ds", "ds_nodash", "ts", "partition_key", "logical_date", "logical_date.hour", "missing"),
    *("macros.ds_add(ds, -1)", "macros.random()", "'x'", "1", "none", "-1", "[ds, 1]", "ds, 1"),
    *("ds ~ '/' ~ run_id", "'a' ~ (ds ~ 'b')", "'d=' + ds", "ds | upper", "ds | replace('-', '')"),
    *("params.region", "params.days", "params.days.append(ds)", "params['<b>']", "var.bucket"),
    *("ti.xcom_pull('x')", "dag_run.logical_date", "dag_run.conf['day']", "self.block()", "1 / 0"),
    *("ds if ds else ts", "'}}' ~ ds", "{'a': ds}", "caller()", "range(2)", "loop", "ds.__class__"),
    *("data_interval_end.strftime('%Y')", "odd", "evil", "''", "ds_format", "ds |", ""),
]


def context():
    """Make a context with values that are awkward in a text, and one that cannot be one."""

    class Unprintable:
        def __str__(self):
            raise ValueError

    params = {"region": "<&>", "days": [], "<b>": "{{ ds }}"}
    return at(params=params, var=Variables(bucket="lake"), odd=Unprintable(), evil="\U000f0001")


def rendered_whole(renderer, template):
    try:
        return renderer.whole(template)
    except Exception:
        return Again()


TEXTS = st.sampled_from(
    ["/", "s3://lake/dt=", " ", "\n", "\r\n ", "", "é", "--", "{", "# a", "\n% b", "\U000f0000"]
)
OPENS = st.sampled_from(["{{", "{{ ", "{{-", "{{- ", "{{+ ", "{{\n"])
CLOSES = st.sampled_from(["}}", " }}", "-}}", " -}}"])
PIECES = st.one_of(
    TEXTS,
    st.tuples(OPENS, st.sampled_from(EXPRESSIONS), CLOSES).map("".join),
    st.sampled_from(["{% set ds = 1 %}", "{# no #}", "{% raw %}{{ ds }}{% endraw %}", "{{"]),
)


@given(st.sampled_from([*ENVIRONMENTS]), st.lists(PIECES, max_size=6).map("".join))
@example("Airflow's", "{{ ds }}{{ var.bucket }}{{ ds }}/{{ var.bucket }}{{ macros.random() }}")
@example("other delimiters", "<< ds >>\n<<- ds ->>\n")
@example("Airflow's", "{{ 'x' }}{{ ds }}\n\n{{--1}}")
def test_in_parts_it_is_what_it_is_as_a_whole(name, template):
    ours = ENVIRONMENTS[name]
    if name == "other delimiters":
        template = template.replace("{{", "<<").replace("}}", ">>")
    in_parts = Renderer(ours, context()).again(template)
    assert in_parts == rendered_whole(Renderer(ours, context()), template)


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_each_expression_is_in_a_text_what_it_is_alone(name, expression):
    ours = ENVIRONMENTS[name]
    start, end = ours.variable_start_string, ours.variable_end_string
    template = f"a/{start} {expression} {end}/{start}{expression}{end}"
    in_parts = Renderer(ours, context()).again(template)
    assert in_parts == rendered_whole(Renderer(ours, context()), template)


# --- how often ------------------------------------------------------------------------------------


def counted(monkeypatch, ours):
    """Count what an environment compiles."""
    compiled = []
    compile_one = ours.compile
    monkeypatch.setattr(ours, "compile", lambda tree: compiled.append(tree) or compile_one(tree))
    return compiled


def test_an_expression_is_compiled_once_for_all_templates_of_a_task(monkeypatch):
    ours = environment()
    compiled = counted(monkeypatch, ours)
    renderer = Renderer(ours, at())
    for number in range(50):
        again = renderer.again(f"s3://lake/t{number}/week={{{{ macros.ds_add(ds, -6) }}}}/")
        assert again.rendering.align(f"s3://lake/t{number}/week=2024-04-30/")
    assert len(compiled) == 1


def test_a_date_is_not_compiled_at_all(monkeypatch):
    ours = environment()
    compiled = counted(monkeypatch, ours)
    assert Renderer(ours, at()).again("dt={{ ds }}/{{ts}}").dates == ("ds", "ts")
    assert compiled == []


def test_an_expression_is_evaluated_no_more_often_than_it_is_in_templates():
    asked = []

    class Counting:
        def __str__(self):
            asked.append(self)
            return "x"

    renderer = Renderer(ENVIRONMENT, at(params=SimpleNamespace(one=Counting())))
    first, second = (renderer.again(f"{n}{{{{ params.one }}}}") for n in range(2))
    assert [again.rendering.segments[0].text for again in (first, second)] == ["0x", "1x"]
    assert len(asked) == 1
