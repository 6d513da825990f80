"""The jobs for spark-submit: each file is one job.

No other module is in this folder, because spark-submit puts the folder of a job first on Python's
module path.
"""

from __future__ import annotations

from pathlib import Path

BUILD_HISTORY = Path(__file__).with_name("build_history.py")
"""The job that builds a history."""
