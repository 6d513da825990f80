"""The files that go with a submission: their paths, the properties file, the observer's zip.

``--jars`` and ``--py-files`` are lists with commas between. An entry that is a URI is taken as one,
with ``#`` before a fragment and ``%2C`` for a comma; for any other entry Spark follows the links
first. Both are globs. A py-file ends up in ``PYTHONPATH``, where colons stand between, the script
that starts Spark drops carriage returns, and a JVM of the C locale knows ASCII only. No way of
writing gets past all of these, so a file whose path :func:`is_plain` does not allow gets a second
path (:class:`Links`).

A :class:`PropertiesFile` holds values that must not become arguments. :func:`observer_zip` packs
the observer for ``--py-files``; one version of the package gives the same bytes.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.submit import distribution

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_PLAIN = re.compile(r"(?:/(?!\.\.(?:/|\Z))[\w.+=@~-]+)+", re.ASCII)
_ODD = re.compile(r"[^/\w.+=@~-]", re.ASCII)
# The characters of a URI, except commas, and except ``#``, as a fragment renames the file.
_URL = re.compile(r"(?:[\w.~:/?@!$&'()*+;=-]|%[0-9A-Fa-f]{2})+", re.ASCII)

_FIX = (
    "Set [sparklineage] capture_location to a path of letters of ASCII, digits and / _ . + = @ ~ - "
    "alone."
)


def is_plain(path: Path) -> bool:
    """Whether Spark reads an absolute path, and the path that its links lead to, back unchanged."""
    return all(_PLAIN.fullmatch(str(p)) is not None for p in (path, path.resolve()))


def require_plain(path: Path) -> None:
    """Refuse a path that is not plain.

    :raise CaptureError: names the character that Spark would misread
    """
    if not is_plain(path):
        raise CaptureError(_misread(path), _FIX)


def is_plain_url(url: str) -> bool:
    """Whether Spark reads a URL in a list as this one URL."""
    return _URL.fullmatch(url) is not None


def scheme(name: str) -> str:
    """Give the scheme of a URI, in lower case; empty for a path."""
    match = re.match(r"([A-Za-z][\w+.-]*):", name)
    return match[1].lower() if match else ""


def local_path(name: str) -> Path | None:
    """Give the file on this machine that an entry of ``--jars`` names; None if there is none."""
    try:
        is_uri = scheme(name) in ("file", "local")
        path = Path(unquote(urlsplit(name).path) if is_uri else name)
        return path if path.is_file() else None
    except (OSError, ValueError):  # no URI, no name of a file, or in a folder of another user
        return None


def _misread(path: Path) -> str:
    """Give the sentence about a path that is not plain; names the character."""
    real = path.resolve()
    if odd := _ODD.search(str(path)):
        return f"Spark would misread {path}, because of {odd[0]!r}."
    if odd := _ODD.search(str(real)):
        return f"Spark would misread {path}, because of {odd[0]!r} in {real}, where it leads to."
    return f"Spark would misread {path}, because of `..`."


def _link(path: Path, link: Path) -> None:
    """Link to a folder; give a file a hard link or a copy, as Spark follows links of files."""
    if path.is_dir():
        link.symlink_to(path)
        return
    try:
        os.link(path.resolve(), link)
    except OSError:  # on another file system, or of another user
        shutil.copyfile(path, link)


class Links:
    """Links for one submission, in a private folder that is made with the first of them."""

    def __init__(self, bundle: Path | None) -> None:
        """Make no link yet.

        :param bundle: folder of the try's bundle; links are put into it if its path is plain
        """
        self._bundle = bundle
        self._folder: Path | None = None
        self._forbidden: str | None = None

    def forbid(self, reason: str) -> None:
        """Allow no links from now on.

        :param reason: a sentence with the reason, for the error
        """
        self._forbidden = reason

    def plain(self, path: Path) -> Path:
        """Give a plain path of a file or folder: its own, or that of a link to it.

        :raise CaptureError: if no link can be made; names the character that Spark would misread
        """
        if is_plain(path):
            return path
        if self._forbidden is not None:
            problem = f"{_misread(path)} {self._forbidden}"
            raise CaptureError(problem, _FIX)
        try:
            folder = self._folder = self._folder or self._made(path)
            # The number distinguishes jars of the same name.
            link = folder / f"{len(list(folder.iterdir()))}-{_ODD.sub('_', path.name)}"
            _link(path, link)
        except OSError as error:
            problem = f"{_misread(path)} No link to it can be made: {error}."
            raise CaptureError(problem, _FIX) from error
        return link

    def entry(self, name: str) -> str:
        """Give the entry of ``--jars`` or ``--py-files`` by which Spark finds the named file.

        :param name: an entry as the user wrote it
        :raise CaptureError: if Spark would misread the name and no link can be made
        """
        path = local_path(name)
        if path is None:  # a URL
            return name
        path = path.absolute()
        plain = self.plain(path)
        return name if plain == path else str(plain)

    def remove(self) -> None:
        """Remove the folder of links, and no file that a link leads to."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _made(self, path: Path) -> Path:
        base = self._bundle
        if base is None or not is_plain(base):
            base = Path(tempfile.gettempdir()).resolve()
        if not is_plain(base):
            problem = f"{_misread(path)} {_misread(base)}"
            raise CaptureError(problem, _FIX)
        return Path(tempfile.mkdtemp(prefix=capture.LINKS_PREFIX, dir=base))  # which makes it 0700


class PropertiesFile:
    """A properties file for this user only, and for the time that the job runs."""

    def __init__(self) -> None:
        self._path: Path | None = None

    def write(self, properties: Mapping[str, str], folders: Iterable[Path]) -> str:
        """Write the file into the first folder that takes it; give its path.

        :param properties: all properties, also those of the replaced file: Spark reads only one
        :raise CaptureError: if no folder takes the file
        """
        reasons = []
        for folder in folders:
            try:
                require_plain(folder)
                capture.require_private(folder)  # or others could put another file in its place
                # mkstemp makes it 0600.
                handle, name = tempfile.mkstemp(prefix=capture.PROPERTIES_PREFIX, dir=folder)
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
        """Remove the file, if it was written."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None


DRIVER = Path(__file__).parents[1] / "driver"
OBSERVER_ZIP = "sparklineage_observer.zip"
# The earliest time that a zip can hold: no build, checkout or clock shows in the bytes.
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


def observer_zip() -> bytes:
    """Pack ``sitecustomize.py`` and the observer's modules, deterministically."""
    files = [DRIVER / "sitecustomize.py", *sorted((DRIVER / "sparklineage_observer").glob("*.py"))]
    buffer = io.BytesIO()
    # Stored: Python imports it without zlib, and it is read from a local disk once.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.relative_to(DRIVER).as_posix(), _ZIP_EPOCH)
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, file.read_bytes())
    return buffer.getvalue()


def write_observer(bundle: Path) -> Path:
    """Write the zip into a capture bundle, readable for this user only.

    :raise CaptureError: if the bundle cannot be written to
    """
    path = bundle / OBSERVER_ZIP
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(observer_zip())
    except OSError as error:
        msg = f"The observer cannot be written to {bundle}: {error}"
        raise CaptureError(msg) from error
    return path
