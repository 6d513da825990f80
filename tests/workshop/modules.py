"""The modules of the package as figures: lines of code, and which module imports which.

Lines of code are those that are not blank, a comment or a docstring. An import counts wherever it
stands: at the top, under ``TYPE_CHECKING`` and inside of a function.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "airflow_provider_sparklineage"
DRIVER = "spark.driver."
"""The driver imports its modules by a name of its own, ``sparklineage_observer.x``."""

_NO_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


@dataclass(frozen=True)
class Module:
    """A file of the package.

    :param name: dotted, below the package; that of a folder is of its ``__init__.py``
    """

    name: str
    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def code(self) -> frozenset[int]:
        """The numbers of the lines that have code."""
        texts = {
            line
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            for line in range(node.lineno, _end(node) + 1)
            if isinstance(node.value.value, str)
        }
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        lines = {
            line
            for token in tokens
            if token.type not in _NO_CODE
            for line in range(token.start[0], token.end[0] + 1)
        }
        return frozenset(lines - texts)

    @cached_property
    def import_lines(self) -> int:
        """How many lines of code are imports."""
        lines = {
            line for node in self.imports for line in range(node.lineno, _end(node) + 1)
        } & self.code
        return len(lines)

    @property
    def imports(self) -> Iterator[ast.Import | ast.ImportFrom]:
        """All statements that import, at any depth."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield node


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def modules(package: Path = PACKAGE) -> dict[str, Module]:
    """Read all modules of a package, by their names."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if "node_modules" in parts:
            continue
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path, path.read_text())
    return found


def imported(module: Module, known: Iterable[str], package: str = PACKAGE.name) -> set[str]:
    """Name the modules that a module imports, itself left out."""
    names, found = set(known), set()
    for node in module.imports:
        if isinstance(node, ast.Import):
            found |= {_below(alias.name, package) for alias in node.names}
            continue
        origin = _below(node.module or "", package)
        for alias in node.names:
            inner = f"{origin}.{alias.name}" if origin else alias.name
            found.add(inner if origin is not None and inner in names else origin)
    return {name for name in found if name is not None and name in names} - {module.name}


def _below(name: str, package: str) -> str | None:
    if name == package:
        return ""
    if name.startswith(f"{package}."):
        return name.removeprefix(f"{package}.")
    return DRIVER + name if name.split(".")[0] == "sparklineage_observer" else None


def importers(found: dict[str, Module], package: str = PACKAGE.name) -> Counter[str]:
    """Count for each module how many others import it."""
    return Counter(name for module in found.values() for name in imported(module, found, package))


def circle(found: dict[str, Module], package: str = PACKAGE.name) -> list[str]:
    """Name modules that import each other in a circle; empty if there is none."""
    graph = {name: imported(module, found, package) for name, module in found.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []
