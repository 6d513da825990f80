"""S3 on the loopback, as Airflow knows it by a connection: a server of moto."""

from __future__ import annotations

import json
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

REGION, USER, PASSWORD = "eu-west-1", "test", "testing"


@contextmanager
def serving() -> Iterator[str]:
    """Serve S3; give its URL."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def bucket(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a bucket, and have Airflow know it by a connection; give its URL."""
    from airflow.sdk.io import fs

    conn_id = f"s3_{url.rpartition(':')[2]}"
    connection = {
        "conn_type": "aws",
        "login": USER,
        "password": PASSWORD,
        "extra": {"endpoint_url": url, "region_name": REGION},
    }
    monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))
    monkeypatch.setattr(fs, "_register_filesystems", lambda: {"s3": _file_system})
    name = uuid.uuid4().hex
    _file_system(conn_id).mkdir(name)
    return f"s3://{conn_id}@{name}"


def _file_system(conn_id: str) -> Any:
    """Give what Airflow's amazon provider makes of a connection."""
    from airflow.providers.common.compat.sdk import BaseHook
    from s3fs import S3FileSystem

    connection = BaseHook.get_connection(conn_id)
    extra = connection.extra_dejson
    return S3FileSystem(
        key=connection.login,
        secret=connection.password,
        endpoint_url=extra["endpoint_url"],
        client_kwargs={"region_name": extra["region_name"]},
    )
