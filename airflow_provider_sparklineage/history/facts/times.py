"""Times of events as the tables have them: UTC, to the microsecond, without a zone."""

from __future__ import annotations

from datetime import UTC, datetime


def utc(text: str | None) -> str | None:
    """Give a time of ISO 8601 in UTC, e.g. ``2024-10-15T03:00:00.000000``; None if it is none.

    A time without a zone is UTC. Java adds the zone's name in brackets to its offset, which is
    passed over; digits beyond microseconds too.
    """
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text.partition("[")[0])
        if time.tzinfo is not None:
            time = time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time.replace(tzinfo=None).isoformat(timespec="microseconds")
