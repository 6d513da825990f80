# PYTHON_ARGCOMPLETE_OK - argcomplete looks for this near the beginning of the file
"""Runs the command as ``python -m airflow_provider_sparklineage.cli``."""

from __future__ import annotations

import sys

from airflow_provider_sparklineage.cli import main

sys.exit(main())
