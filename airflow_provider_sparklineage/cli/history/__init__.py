"""Commands on the history: they build it, and ask what spans runs.

``history`` builds, shows and compacts the store; ``trace``, ``impact``, ``stale``, ``gaps``,
``drift`` and ``patterns`` are its questions. Answers are tables for people, and with ``--json`` one
object a line. How old the store is goes to stderr, with notes and errors.

Exit codes are those of all commands: 0 answered, whatever the answer is; 1 not done, or with
``--strict`` something was found; 2 there is no store, or nothing in it of that name.
"""

from __future__ import annotations

from airflow_provider_sparklineage.cli.history import questions, store
from airflow_provider_sparklineage.cli.history.questions import IMPACT, STALE

COMMANDS = (store.GROUP, questions.TRACE, IMPACT, STALE, *questions.OTHERS)
"""In the order in which people need them."""
