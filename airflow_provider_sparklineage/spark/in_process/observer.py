"""The observer, which is shipped to other drivers, imported where the driver is this process."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from airflow_provider_sparklineage.spark.submit.observer_zip import DRIVER

_PACKAGE = "sparklineage_observer"


def module(name: str) -> Any:
    """Import a module of the observer's, whose modules know each other by their name in the zip."""
    if _PACKAGE not in sys.modules:
        folder = DRIVER / _PACKAGE
        spec = spec_from_file_location(
            _PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        if spec is None or spec.loader is None:
            msg = f"There is no {folder}."
            raise ImportError(msg)
        package = module_from_spec(spec)
        sys.modules[_PACKAGE] = package
        spec.loader.exec_module(package)
    return import_module(f"{_PACKAGE}.{name}")
