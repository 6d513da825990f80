"""Write the table of options into docs/configuration.md: ``python -m tests.write_options``."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_sparklineage.settings.options import OPTIONS, Option

DOCUMENT = Path(__file__).parents[1] / "docs" / "configuration.md"
BEGIN = "<!-- Written by `python -m tests.write_options`. -->\n"
END = "<!-- /options -->\n"


def documented(text: str) -> str:
    """Put the table between the two marks of a document."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    lines = [
        "| option | type | default | also set by | |",
        "|---|---|---|---|---|",
        *map(_row, OPTIONS),
    ]
    return f"{before}{BEGIN}{chr(10).join(lines)}\n{END}{after}"


def _row(option: Option) -> str:
    default = f"`{option.default}`" if option.default else ""
    by = [
        *(["connection"] if option.in_connection else []),
        *(["operator"] if option.in_operator else []),
    ]
    description = option.description.replace("|", "\\|")
    return (
        f"| `{option.name}` | {option.kind.airflow_type} | {default} | {', '.join(by)} "
        f"| {description} |"
    )


if __name__ == "__main__":
    DOCUMENT.write_text(documented(DOCUMENT.read_text()))
