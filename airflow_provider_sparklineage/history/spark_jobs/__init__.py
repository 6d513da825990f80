"""What spark-submit runs: each file is a job of its own.

Nothing else is in this folder, as spark-submit puts it first on the path of modules.
"""

from __future__ import annotations

from pathlib import Path

BUILD_HISTORY = Path(__file__).with_name("build_history.py")
"""The job that builds a history."""
