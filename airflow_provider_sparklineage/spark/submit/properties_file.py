"""The properties file of one submission, for what must not become an argument."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture import retention
from airflow_provider_sparklineage.spark.submit import distribution
from airflow_provider_sparklineage.spark.submit.plain_paths import require_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class PropertiesFile:
    """A file that is for this user only, and for the time that the job runs."""

    def __init__(self) -> None:
        self._path: Path | None = None

    def write(self, properties: Mapping[str, str], folders: Iterable[Path]) -> str:
        """Write it into the first folder that takes it; give its path.

        :param properties: all, those of the file that it replaces as well: Spark reads only one
        :raise CaptureError: if no folder takes it
        """
        reasons = []
        for folder in folders:
            try:
                require_plain(folder)
                capture.require_private(folder)  # or others could put another file in its place
                # Which makes it 0600.
                handle, name = tempfile.mkstemp(prefix=retention.PROPERTIES_PREFIX, dir=folder)
                self._path = Path(name)
                os.close(handle)
                distribution.write_properties(self._path, properties)
            except (CaptureError, OSError) as error:
                reasons.append(error.problem if isinstance(error, CaptureError) else f"{error}.")
                self.remove()
            else:
                return name
        problem = f"No properties file for secrets can be written: {' '.join(reasons)}"
        fix = "Make room in the capture location or in the temporary folder."
        raise CaptureError(problem, fix)

    def remove(self) -> None:
        """Remove it, if it was written."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None
