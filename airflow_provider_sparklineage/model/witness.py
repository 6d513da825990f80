"""Who reported something."""

from enum import StrEnum


class Witness(StrEnum):
    """Whose word something is."""

    LISTENER = "listener"
    OBSERVER = "observer"
    BOTH = "both"
    DECLARED = "declared"
