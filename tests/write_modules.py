"""Write the list of modules into docs/architecture.md: ``python -m tests.write_modules``."""

from __future__ import annotations

import ast
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "airflow_provider_sparklineage"
DOCUMENT = ROOT / "docs" / "architecture.md"
BEGIN = "<!-- Written by `python -m tests.write_modules`. -->\n"
END = "<!-- /modules -->\n"


def documented(text: str) -> str:
    """Put the list between the two marks of a document."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{chr(10).join(_lines())}\n{END}{after}"


def _lines() -> Iterator[str]:
    """Yield a line for each folder and for each of its modules: the first sentence of each."""
    modules = (path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)
    by_folder = groupby(sorted(modules, key=lambda path: (path.parent, path)), lambda p: p.parent)
    for folder, files in by_folder:
        yield f"**{folder.relative_to(PACKAGE)}/**: {_first_sentence(folder / '__init__.py')}"
        yield ""
        yield from (
            f"- `{file.name}`: {_first_sentence(file)}" for file in files if file.stem != "__init__"
        )
        yield ""


def _first_sentence(module: Path) -> str:
    docstring = ast.get_docstring(ast.parse(module.read_text())) or ""
    text = docstring.partition("\n\n")[0].replace("\n", " ")
    # What is a reference or code in a docstring is code on the page.
    return text.replace(":mod:", "").replace(":class:", "").replace(":data:", "").replace("``", "`")


if __name__ == "__main__":
    DOCUMENT.write_text(documented(DOCUMENT.read_text()))
