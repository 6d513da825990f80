"""What a command prints, as a picture of a terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from io import StringIO
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.text import Text

from tests.pictures import demo

if TYPE_CHECKING:
    from pathlib import Path

_WIDTH = 112
# Without the font that a browser would ask another machine for, and without an address.
_FORMAT = re.sub(r"@font-face \{\{.*?\}\}|<!--.*?-->", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
_FORMAT = _FORMAT.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, monospace")


def draw_show(file: Path, task_id: str) -> None:
    """Draw what ``sparklineage show`` prints of a task's last event."""
    with NamedTemporaryFile("w", suffix=".json") as event:
        json.dump(demo.last_event(task_id), event)
        event.flush()
        command = [sys.executable, "-m", "airflow_provider_sparklineage.cli", "show", event.name]
        terminal = {"FORCE_COLOR": "1", "COLUMNS": str(_WIDTH), "TERM": "xterm-256color"}
        done = subprocess.run(
            command, env=os.environ | terminal, capture_output=True, text=True, check=True
        )
    console = Console(record=True, width=_WIDTH, file=StringIO())
    console.print(Text.from_ansi(done.stdout.rstrip("\n")), soft_wrap=True)
    picture = console.export_svg(
        title="sparklineage show", code_format=_FORMAT, unique_id=f"show-{task_id}"
    )
    file.write_text(re.sub(r"[ \t]+$", "", picture, flags=re.MULTILINE))
