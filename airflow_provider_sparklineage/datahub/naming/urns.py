"""URNs of DataHub's entities: plain text, as its SDK makes them, and such as its server takes.

The server (``UrnValidationUtil``) refuses a URN that takes more than 512 bytes once it is encoded
for a URL, but that of a field, and one with a ``␟``. Commas and parentheses it takes for its own.

========================  ==========================================================================
``,`` ``(`` ``)`` ``␟``   percent-encoded (``UrnEncoder`` of the SDK)
control characters        so, as well, and halves of surrogate pairs: not every database takes them
``%`` before such a code  ``%25``, so that ``a,b`` and a name ``a%2Cb`` are two. Any other stays
what is too long          its beginning, and a checksum of all of it
========================  ==========================================================================
"""

from __future__ import annotations

import re
from hashlib import sha256
from urllib.parse import quote, quote_plus

MAX_BYTES = 512
"""Of a URN that is encoded for a URL: ``UrnValidationUtil.URN_NUM_BYTES_LIMIT``."""

_CODES = r"2C|28|29|E2%90%9F|[01][0-9A-F]|7F|ED%[AB][0-9A-F]%[89AB][0-9A-F]"
_RESERVED = re.compile(rf"[,()␟\x00-\x1f\x7f\ud800-\udfff]|%(?=(?:25)*(?:{_CODES}))")
_CHECKSUM = 16  # hex digits: 64 bits


def encoded(text: str) -> str:
    """Encode what has a meaning in a URN; two texts never become one."""
    return _RESERVED.sub(lambda found: quote(found[0], safe="", errors="surrogatepass"), text)


def fitted(text: str, before: str, after: str) -> str:
    """Encode a text so that the server takes the URN that it is a part of.

    :param text: a name, an id
    :param before: what the URN has before it, encoded
    :param after: what the URN has after it, encoded
    :return: all of it where there is room, else its beginning with a checksum of all
    """
    return _within(text, MAX_BYTES - _bytes(before) - _bytes(after))


def dataset(platform: str, name: str, env: str) -> str:
    """Give the URN of a dataset.

    :param name: with the platform instance that it begins with, if there is one
    """
    before, after = f"urn:li:dataset:({data_platform(platform)},", f",{env})"
    return f"{before}{fitted(name, before, after)}{after}"


_PLATFORM_BYTES = 64  # so that there is room for names: the longest of DataHub's own has 22


def data_platform(platform: str) -> str:
    """Give the URN of a platform."""
    return f"urn:li:dataPlatform:{_within(platform, _PLATFORM_BYTES)}"


def platform_instance(platform: str, instance: str) -> str:
    """Give the URN of one of several instances of a platform."""
    before = f"urn:li:dataPlatformInstance:({data_platform(platform)},"
    return f"{before}{fitted(instance, before, ')')})"


def platform_of(dataset_urn: str) -> str:
    """Give the URN of the platform that a dataset is of."""
    return dataset_urn.partition("(")[2].partition(",")[0]


def schema_field(dataset_urn: str, path: str) -> str:
    """Give the URN of a field of a dataset."""
    return f"urn:li:schemaField:({dataset_urn},{encoded(path)})"


_FLOW_BYTES = 200  # so that there is as much room for the ids of its jobs


def data_flow(flow_id: str, cluster: str, orchestrator: str = "airflow") -> str:
    """Give the URN of a DAG."""
    parts = _within(orchestrator, 32), _within(flow_id, _FLOW_BYTES), _within(cluster, 32)
    return f"urn:li:dataFlow:({','.join(parts)})"


def data_job(flow: str, job_id: str) -> str:
    """Give the URN of a task."""
    before = f"urn:li:dataJob:({flow},"
    return f"{before}{fitted(job_id, before, ')')})"


def process_instance(run_id: str) -> str:
    """Give the URN of a run."""
    before = "urn:li:dataProcessInstance:"
    return before + fitted(run_id.strip(), before, "")


def _within(text: str, room: int) -> str:
    whole = encoded(text)
    if _bytes(whole) <= room:
        return whole
    mark = f"~{sha256(text.encode(errors='surrogatepass')).hexdigest()[:_CHECKSUM]}"
    low, high = 0, len(text)  # how much of it surely has room, and how much surely has not
    while low + 1 < high:
        middle = (low + high) // 2
        fits = _bytes(encoded(text[:middle]) + mark) <= room
        low, high = (middle, high) if fits else (low, middle)
    return encoded(text[:low]) + mark


def _bytes(text: str) -> int:
    """Count as ``java.net.URLEncoder`` does, which encodes ``~`` and leaves ``*``."""
    return len(quote_plus(text, safe="*")) + 2 * text.count("~")
