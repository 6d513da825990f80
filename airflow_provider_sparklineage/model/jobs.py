"""What identifies a job in OpenLineage."""

from __future__ import annotations

import msgspec


class JobName(msgspec.Struct, frozen=True, order=True):
    """OpenLineage namespace and name of a job, with the keys that OpenLineage has for them."""

    namespace: str
    name: str
