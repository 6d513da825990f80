"""How long tracing a task's templates takes, against rendering them."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from jinja2 import StrictUndefined
from jinja2.sandbox import SandboxedEnvironment

from airflow_provider_sparklineage.templates import Tracer
from benchmarks.measuring import in_turns
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Iterator


# Without plain texts, which cost Jinja as much to render as tracing saves on them.
ARGUMENTS = [
    "--orders=s3://{{ var.value.bucket }}/orders/dt={{ ds }}",
    "--revenue=s3://{{ params.bucket }}/revenue/dt={{ ds }}/hour={{ logical_date.hour }}",
    "--week={% for i in range(7) %}/lake/d={{ macros.ds_add(ds, -i) }},{% endfor %}",
    '{{ data_interval_start.strftime("%Y-%m-%dT%H:%M") }}',
]
CONF = {
    "spark.app.name": "revenue {{ ds_nodash }}",
    "spark.hadoop.fs.s3a.endpoint": "{{ params.endpoint }}",
}


def measured() -> Iterator[Result]:
    """Trace a task's templates, against rendering them as Airflow does."""
    logical_date = datetime(2024, 5, 6, tzinfo=UTC)
    context: dict[str, Any] = {
        "ds": "2024-05-06",
        "ds_nodash": "20240506",
        "logical_date": logical_date,
        "data_interval_start": logical_date,
        "params": {"bucket": "lake", "endpoint": "http://minio:9000"},
        "var": {"value": SimpleNamespace(bucket="lake")},
        "macros": SimpleNamespace(ds_add=lambda day, days: f"{day}{days:+}"),
    }
    environment = SandboxedEnvironment(undefined=StrictUndefined, cache_size=0)

    def rendered(text: str) -> str:
        return environment.from_string(text).render(context)

    def render() -> tuple[list[str], dict[str, str]]:
        return [rendered(a) for a in ARGUMENTS], {k: rendered(v) for k, v in CONF.items()}

    arguments, conf = render()

    def trace() -> None:
        tracer = Tracer(environment, context)
        traced = tracer.trace_all("application_args", ARGUMENTS, arguments)
        traced += tracer.trace_all("conf", CONF, conf)
        assert all(text.spans for text in traced), "what has no spans was not traced"

    render_s, trace_s = in_turns(render, trace, runs=200)
    figures = (
        f"{len(ARGUMENTS) + len(CONF)} texts: traced in {trace_s * 1000:.1f} ms, "
        f"rendered in {render_s * 1000:.1f} ms"
    )
    yield Result("trace a task's templates / render them", trace_s / render_s, 2.0, figures)
