"""Small jars that look to this package like the listener's."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MARKERS = {
    "2.12": b"\0scala/collection/convert/Decorators\0",
    "2.13": b"\0scala/collection/JavaConverters$AsScala\0",
}


def listener_jar(path: Path, scala: str | None = "2.13", version: str | None = "1.53.0") -> Path:
    """Make a jar with the listener's class and the version files of the real one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    agent = "io/openlineage/spark/agent"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
        if version is not None:
            archive.writestr(f"{agent}/version.properties", f"#a date\nversion={version}\n")
        if scala is not None:
            archive.writestr(f"{agent}/util/ScalaConversionUtils.class", MARKERS[scala])
        archive.writestr(f"{agent}/OpenLineageSparkListener$1.class", b"another class")
        archive.writestr(f"{agent}/OpenLineageSparkListener.class", b"the class")
    return path


def with_a_damaged_class(jar: Path) -> Path:
    """Add a class and put zeros into it, as a crash leaves them: size and directory stay."""
    name = "io/openlineage/spark/Shaded.class"
    with zipfile.ZipFile(jar, "a") as archive:
        archive.writestr(name, b"x" * 500, zipfile.ZIP_STORED)
        at = archive.getinfo(name).header_offset
    with jar.open("r+b") as file:
        file.seek(at + 100)
        file.write(bytes(200))
    return jar


def other_jar(path: Path) -> Path:
    """Make a jar without a listener."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("shop/Audit.class", b"")
    return path
