"""Templates that raise, change or grow when they are rendered once more; odd declarations."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from airflow_provider_sparklineage.expectations import DatasetSubset
from tests.faults.bench import raising
from tests.faults.registry import Area

AREA = Area(
    "Templates and declarations",
    "The job's fields are rendered as ever. A declaration that makes no sense is left out, and "
    "what Spark reports stays.",
)
fault = AREA.fault
UNUSABLE = "declaration_unusable"


@fault("A template gives another text each time")
def _(bench):
    bench.context["next"] = iter(range(100)).__next__
    bench.arguments["application_args"] = ["--batch", "{{ next() }}"]


def _renders_once(bench, then):
    """Let a template be rendered once by each operator, and then call something else."""
    rendered = iter(["2024-05-06", "2024-05-06"])
    bench.context["once"] = lambda: next(rendered, None) or then()
    bench.arguments["application_args"] = ["--date", "{{ once() }}"]


@fault("A template raises when it is rendered for the second time")
def _(bench):
    _renders_once(bench, raising(LookupError()))


@fault("A template ends the process when it is rendered for the second time")
def _(bench):
    _renders_once(bench, sys.exit)


@fault("A macro in `reads` ends the process", UNUSABLE)
def _(bench):
    bench.context["end"] = sys.exit
    bench.lineage["reads"] = ["/lake/dt={{ end(3) }}"]


@fault("A template of the job is wrong", "not_submitted", ends="TemplateSyntaxError")
def _(bench):
    bench.arguments["application_args"] = ["{{ ds"]


@fault("A template of `reads` is wrong", UNUSABLE)
def _(bench):
    bench.lineage["reads"] = ["/lake/{{ ds"]


@fault("A template of `reads` names a macro that does not exist", UNUSABLE)
def _(bench):
    bench.lineage["reads"] = ["/lake/dt={{ macros.nowhere.day(ds) }}"]


@fault("A template is of a million characters")
def _(bench):
    bench.arguments["application_args"] = ["--note", "{# " + "x" * 1_000_000 + " #}{{ ds }}"]


@fault("A thousand arguments have templates")
def _(bench):
    bench.arguments["application_args"] = ["dt={{ ds }}/part=" + str(n) for n in range(1000)]


@fault("The environment of the job has a value that is no text", "no_events", ends="TypeError")
def _(bench):
    bench.arguments["env_vars"] = {"DATE": datetime(2024, 5, 6, tzinfo=UTC)}


@fault("The template context has a value whose text raises")
def _(bench):
    class Odd:
        def __str__(self):
            raise ArithmeticError

    bench.context["odd"] = Odd()


ODD = {
    "None": None,
    "a number": 7,
    "bytes": b"/lake/orders",
    "an object": object(),
    "a URL without an end": "http://[",
    "half a surrogate": "/lake/\ud800",
    "a list of None": [None],
}


def _declare(side, odd):
    def declared(bench):
        bench.lineage[side] = [odd]

    return declared


for name, odd in ODD.items():
    fault(f"`reads` has {name}", UNUSABLE)(_declare("reads", odd))


@fault("`reads` has a NUL", "backend_repaired")
def _(bench):
    bench.lineage["reads"] = ["/lake/\0"]


@fault("A declared partition is an object", UNUSABLE)
def _(bench):
    bench.lineage["writes"] = [DatasetSubset("/lake/reports/path", {"dt": object()})]


@fault("A declared range has no end", UNUSABLE)
def _(bench):
    bench.lineage["writes"] = [DatasetSubset("/lake/reports/path", {"dt": {"from": 1}})]


@fault("A declared dataset is none that the job reads", changes="it is an input, as declared")
def _(bench):
    bench.lineage["reads"] = ["/lake/elsewhere"]


@fault("A declared table is none that the job reads", "declaration_unbound")
def _(bench):
    bench.lineage["reads"] = ["shop.nowhere"]


@fault("`partition_key_dimensions` is a pattern that the run's key does not fit", UNUSABLE)
def _(bench):
    bench.context["partition_key"] = "2024-05-06"
    bench.lineage["partition_key_dimensions"] = "{dt}|{region}"


@fault("`partition_key_dimensions` is an object", UNUSABLE)
def _(bench):
    bench.context["partition_key"] = "2024-05-06"
    bench.lineage["partition_key_dimensions"] = object()


@fault("An outlet is no asset")
def _(bench):
    bench.arguments["outlets"] = [object()]


@fault("Tracing of templates has a defect")
def _(bench):
    bench.breaks(".operators.attempt.prepare.Tracer.trace_all")


@fault("Understanding declarations has a defect", UNUSABLE)
def _(bench):
    bench.breaks(".operators.attempt.prepare.declarations.declared")
