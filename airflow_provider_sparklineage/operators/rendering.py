"""The templates of an operator, traced when Airflow has rendered them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.operators.masking import mask
from airflow_provider_sparklineage.spark.submit import injection
from airflow_provider_sparklineage.spark.submit.submission import Submission
from airflow_provider_sparklineage.templates import TracedText, Tracer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context
    from jinja2 import Environment

log = logger(__name__)


def traces(
    operator: Any, templates: Mapping[str, object], environment: Environment, context: Context
) -> tuple[TracedText, ...]:
    """
    Trace what was just rendered; never raises.

    :param templates: the fields that can name data, by name, as they were before
    :param environment: that which Airflow rendered with
    :param context: that which Airflow rendered with
    """
    traced: list[TracedText] = []
    tracer = Tracer(environment, context)  # one, for what the fields have in common
    for name, template in templates.items():
        try:
            content = _read(template, tuple(operator.template_ext), environment)
            rendered = getattr(operator, name, None)
            traced += tracer.trace_all(name, content, rendered)
        except Exception:
            log.debug("The templates in %s could not be traced", name, exc_info=True)
    return tuple(traced)


def hide_secrets(operator: Any) -> None:
    """Register secrets of a transport among the rendered properties before Airflow shows them."""
    texts = {str(key): str(value) for key, value in operator.spark_properties.items()}
    mask(*injection.transport_secrets(Submission(conf=texts)))


def _read(template: object, extensions: tuple[str, ...], environment: Environment) -> object:
    """Put the content of template files in place of their names, as rendering does."""
    if not extensions:
        return template
    if isinstance(template, str) and template.endswith(extensions) and environment.loader:
        return environment.loader.get_source(environment, template)[0]
    if isinstance(template, (list, tuple)):
        return type(template)(_read(item, extensions, environment) for item in template)
    if isinstance(template, dict):
        return {key: _read(item, extensions, environment) for key, item in template.items()}
    return template
