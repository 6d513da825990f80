"""The files that are submitted with a job: their paths, the properties file, the observer's zip.

``--jars`` and ``--py-files`` are lists, separated by commas. Spark reads an entry with a scheme as
a URI, in which ``#`` begins a fragment and ``%2C`` stands for a comma; in an entry that is a path,
Spark first follows the links. Spark reads both kinds of entries as globs. The path of a py-file is
added to ``PYTHONPATH``, where colons separate the entries. The script that starts Spark drops
carriage returns, and a JVM in the C locale knows only ASCII. No quoting works in all these places.
So a file whose path :func:`is_plain` does not accept gets a second path (:class:`Links`).

A :class:`PropertiesFile` holds values that must not become arguments. :func:`observer_zip` packs
the observer for ``--py-files``; each version of this package always gives the same bytes.
"""

from __future__ import annotations

import hashlib
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
# The characters of a URI without commas, and without ``#``, because a fragment renames the file.
_URL = re.compile(r"(?:[\w.~:/?@!$&'()*+;=-]|%[0-9A-Fa-f]{2})+", re.ASCII)

_FIX = (
    "Set [sparklineage] capture_location to a path of letters of ASCII, digits and / _ . + = @ ~ - "
    "alone."
)


def is_plain(path: Path) -> bool:
    """Whether Spark reads an absolute path in a list correctly, also after following its links."""
    return all(_PLAIN.fullmatch(str(p)) is not None for p in (path, path.resolve()))


def is_plain_url(url: str) -> bool:
    """Whether Spark reads a URL in a list as this one URL, unchanged."""
    return _URL.fullmatch(url) is not None


def scheme(name: str) -> str:
    """Give the scheme of a URI in lower case; the empty text for a path.

    :param name: the URI or the path
    """
    match = re.match(r"([A-Za-z][\w+.-]*):", name)
    return match[1].lower() if match else ""


def local_path(name: str) -> Path | None:
    """Give the file that an entry of ``--jars`` names; None if this machine has no such file."""
    try:
        is_uri = scheme(name) in ("file", "local")
        path = Path(unquote(urlsplit(name).path) if is_uri else name)
        return path if path.is_file() else None
    except (OSError, ValueError):  # no URI, no name of a file, or in a folder of another user
        return None


def _misread(path: Path) -> str:
    """Give a sentence about a path that is not plain, with the character that Spark misreads."""
    real = path.resolve()
    if odd := _ODD.search(str(path)):
        return f"Spark would misread {path}, because of {odd[0]!r}."
    if odd := _ODD.search(str(real)):
        return f"Spark would misread {path}, because of {odd[0]!r} in {real}, where it leads to."
    return f"Spark would misread {path}, because of `..`."


def _link(path: Path, link: Path) -> None:
    """Make a symbolic link to a folder, or a hard link or copy of a file.

    A symbolic link to a file would not help, because Spark replaces it by the file's own path.

    :param path: the folder or file
    :param link: the path of the link or copy to make
    """
    if path.is_dir():
        link.symlink_to(path)
        return
    try:
        os.link(path.resolve(), link)
    except OSError:  # the file is on another file system, or belongs to another user
        shutil.copyfile(path, link)


class Links:
    """The links of one submission, in a private folder that is made with the first link."""

    def __init__(self, bundle: Path | None) -> None:
        """Note the folder in which links will be made; make no link yet.

        :param bundle: the folder of the try's bundle; if it is None, or its path is not plain
            (:func:`is_plain`), links are made in the temporary folder
        """
        self._bundle = bundle
        self._folder: Path | None = None
        self._forbidden: str | None = None

    def forbid(self, reason: str) -> None:
        """Allow no links from now on: a path that is not plain (:func:`is_plain`) raises an error.

        :param reason: a sentence for the error's message that explains why
        """
        self._forbidden = reason

    def plain(self, path: Path) -> Path:
        """Give a path to a file or folder that Spark reads correctly: its own path, or a link's.

        :raise CaptureError: if a link is needed and cannot be made; the message names the character
            that Spark would misread
        """
        if is_plain(path):
            return path
        if self._forbidden is not None:
            problem = f"{_misread(path)} {self._forbidden}"
            raise CaptureError(problem, _FIX)
        try:
            folder = self._folder = self._folder or self._new_folder(path)
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
        """Remove the folder of links, but not the files and folders to which the links lead."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _new_folder(self, path: Path) -> Path:
        base = self._bundle
        if base is None or not is_plain(base):
            base = Path(tempfile.gettempdir()).resolve()
        if not is_plain(base):
            problem = f"{_misread(path)} {_misread(base)}"
            raise CaptureError(problem, _FIX)
        return Path(tempfile.mkdtemp(prefix=capture.LINKS_PREFIX, dir=base))  # its mode is 0700


class PropertiesFile:
    """A properties file that only this user can read, and that is removed after the job."""

    def __init__(self) -> None:
        self._path: Path | None = None

    def write(self, properties: Mapping[str, str], folders: Iterable[Path]) -> str:
        """Write the file into the first folder in which this is possible; give the file's path.

        :param properties: all properties, also those of the user's file, because Spark reads only
            one file
        :param folders: the folders to try, in this order
        :raise CaptureError: if the file can be written into none of the folders
        """
        reasons = []
        for folder in folders:
            try:
                if not is_plain(folder):
                    reasons.append(_misread(folder))
                    continue
                capture.require_private(folder)  # or others could put another file in its place
                # mkstemp makes the file with the mode 0600.
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
_DIGEST_MODULE = "sparklineage_observer/digest.py"
# The earliest time that a zip can hold. With a fixed time, the bytes do not depend on the time of a
# build or checkout.
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


def observer_zip() -> bytes:
    """Pack ``sitecustomize.py`` and the observer's modules into a zip.

    One more module has their digest, which the observer writes down. The bytes of the zip depend on
    nothing but these files.
    """
    files = _observer_files()
    files[_DIGEST_MODULE] = f'DIGEST = "{_digest(files)}"\n'.encode()
    buffer = io.BytesIO()
    # Not compressed: so Python needs no zlib to import it, and its size matters little.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _ZIP_EPOCH)
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def observer_digest() -> str:
    """Give the digest of the observer's files, by which an observer of another version is seen."""
    return _digest(_observer_files())


def _observer_files() -> dict[str, bytes]:
    files = [DRIVER / "sitecustomize.py", *sorted((DRIVER / "sparklineage_observer").glob("*.py"))]
    return {file.relative_to(DRIVER).as_posix(): file.read_bytes() for file in files}


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def write_observer(bundle: Path) -> Path:
    """Write the observer's zip into a capture bundle, as a file that only this user can read.

    :param bundle: the folder of the try's bundle
    :return: the path of the zip
    :raise CaptureError: if the bundle cannot be written to
    """
    path = bundle / OBSERVER_ZIP
    try:
        capture.write_private(path, observer_zip())
    except OSError as error:
        msg = f"The observer cannot be written to {bundle}: {error}"
        raise CaptureError(msg) from error
    return path
