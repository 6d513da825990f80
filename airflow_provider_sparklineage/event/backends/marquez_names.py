"""Which texts Marquez 0.51 can hold."""

from __future__ import annotations

import re

NOT_IN_NAMESPACES = re.compile(r"[^A-Za-z0-9:;=/_.@+-]")
"""Of ``marquez.common.models.NamespaceName``, as which it reads all namespaces again."""
MAX_NAMESPACE = 1024

_UNHELD = re.compile("[\\x00\\ud800-\\udfff]")


def held_text(text: str) -> str:
    """Take out of a text what PostgreSQL cannot hold."""
    return _UNHELD.sub("", text) if _UNHELD.search(text) else text
