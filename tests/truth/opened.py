"""Which files a job really opened while a query ran, by strace of all its processes."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BEGUN, ENDED = "begun", "ended"
"""Files of the lake that the application opens when a query begins, and when it has ended."""

_OPENED = re.compile(r'openat\([^,]+, "((?:[^"\\]|\\.)*)", (O_\w+)')


def why_not() -> str | None:
    """Give the reason why nothing can be traced here; None if it can."""
    if shutil.which("strace") is None:
        return "there is no strace"
    tried = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], check=False)
    return "strace may not trace here" if tried.returncode else None


def tracing(log: Path) -> list[str]:
    """Give the command that traces another one."""
    chosen = ["-e", "trace=openat", "-e", "signal=none", "--seccomp-bpf"]
    return ["strace", "-f", "-qq", *chosen, "-o", str(log)]


def during_queries(log: Path, lake: Path, names: list[str]) -> Mapping[str, set[Path]]:
    """Give the files of the lake that were opened for reading while each query ran.

    :param names: of the queries, in the order in which they ran
    """
    found: dict[str, set[Path]] = defaultdict(set)
    waiting, running = iter(names), None
    for path, flag in _opened(log):
        if path == lake / BEGUN:
            running = next(waiting)
        elif path == lake / ENDED:
            running = None
        elif running and flag == "O_RDONLY" and path.is_relative_to(lake):
            found[running].add(path)
    return found


def _opened(log: Path) -> Iterator[tuple[Path, str]]:
    with log.open(errors="replace") as lines:
        for line in lines:
            if (found := _OPENED.search(line)) and " = -1 " not in line:
                yield Path(_unescaped(found[1])), found[2]


def _unescaped(text: str) -> str:
    """Read a text as strace writes it: what is not ASCII as octal numbers of its bytes."""
    return text.encode().decode("unicode_escape").encode("latin-1").decode(errors="replace")
