"""The observer as one zip, for ``--py-files``; one version of the package gives the same bytes."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

from airflow_provider_sparklineage.model.exceptions import CaptureError

DRIVER = Path(__file__).parents[1] / "driver"
NAME = "sparklineage_observer.zip"
# The earliest time that a zip can hold: no build, checkout or clock shows in the bytes.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def content() -> bytes:
    """Pack ``sitecustomize.py`` and the observer's modules, deterministically."""
    files = [DRIVER / "sitecustomize.py", *sorted((DRIVER / "sparklineage_observer").glob("*.py"))]
    buffer = io.BytesIO()
    # Stored: Python imports it without zlib, and it is read from a local disk once.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.relative_to(DRIVER).as_posix(), _EPOCH)
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, file.read_bytes())
    return buffer.getvalue()


def write(bundle: Path) -> Path:
    """Write the zip into a capture bundle, readable for this user only.

    :raise CaptureError: if the bundle cannot be written to
    """
    path = bundle / NAME
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content())
    except OSError as error:
        msg = f"The observer cannot be written to {bundle}: {error}"
        raise CaptureError(msg) from error
    return path
