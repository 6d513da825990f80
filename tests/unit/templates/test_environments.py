"""Templates are traced in every environment of Jinja that may have rendered them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2 import StrictUndefined
from jinja2.ext import Extension
from jinja2.nativetypes import NativeEnvironment
from jinja2.sandbox import SandboxedEnvironment

from tests.unit.templates.test_templates import ENVIRONMENT, NATIVE, Variables, at, trace


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


def checked(name, template):
    """Trace a template that an environment renders; give what is asserted of any."""
    ours = ENVIRONMENTS[name]
    try:
        rendered = ours.from_string(template).render(context())
    except Exception:  # of the template's own, so Airflow has no text to trace
        rendered = "unknown"
    try:
        value = str(rendered)
    except Exception:  # what native rendering gave has no text
        value = ""
    text = trace("f", template, rendered, ours, context())
    assert (text.template, text.value) == (template, value)
    ends = [0, *(end for span in text.spans for end in (span.start, span.end)), len(text.value)]
    assert ends == sorted(ends)
    return text


@given(st.sampled_from([*ENVIRONMENTS]), st.lists(PIECES, max_size=6).map("".join))
@example("Airflow's", "{{ ds }}{{ var.bucket }}{{ ds }}/{{ var.bucket }}{{ macros.random() }}")
@example("other delimiters", "<< ds >>\n<<- ds ->>\n")
@example("Airflow's", "{{ 'x' }}{{ ds }}\n\n{{--1}}")
@example("native", "{{missing}}")
@example("native", "{{odd}}")
def test_in_every_environment_spans_are_in_the_text_in_order(name, template):
    if name == "other delimiters":
        template = template.replace("{{", "<<").replace("}}", ">>")
    checked(name, template)


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_in_every_environment_an_expression_has_its_span(name, expression):
    ours = ENVIRONMENTS[name]
    start, end = ours.variable_start_string, ours.variable_end_string
    text = checked(name, f"a/{start} ds {end}/{start}{expression}{end}")
    if text.spans and name != "changing texts":
        first = text.spans[0]
        assert (text.value[first.start : first.end], first.variables) == ("2024-05-06", ("ds",))
