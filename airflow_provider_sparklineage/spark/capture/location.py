"""Where the capture bundles of a worker are, and where drivers in a cluster deliver to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from pathlib import Path

# Airflow's names of file systems, where Hadoop has other ones.
_IN_HADOOP = {"s3": "s3a", "s3n": "s3a", "gcs": "gs", "abfs": "abfss", "webhdfs": "hdfs"}
# Airflow has the account in the connection, Hadoop in the URL.
_WITH_ACCOUNT = ("abfs", "abfss", "adl")
_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:[^@/]*@)?(?P<rest>.*)")


class CaptureLocation(Frozen, frozen=True):
    """Where capture bundles are.

    :param folder: of the worker's own, for those that it works with
    :param url: for what drivers in a cluster deliver, as Airflow's ``ObjectStoragePath`` takes it;
        empty if they deliver nothing
    """

    folder: Path
    url: str = ""

    def __str__(self) -> str:
        return self.url or str(self.folder)


def in_spark(url: str, given: str, folder: str = "") -> str:
    """Give the URL by which Spark's Hadoop file systems know a location.

    :param url: as Airflow takes it, with or without a connection's id
    :param given: ``capture_location_in_spark``; empty if it is to be derived
    :param folder: name of one in it, of which the URL is wanted
    :raise SettingsError: if it cannot be derived
    """
    return f"{given or _derived(url)}/{folder}".rstrip("/")


def _derived(url: str) -> str:
    match = _URL.fullmatch(url)
    if match is None:
        problem = f"[sparklineage] capture_location {url} is no URL."
        raise SettingsError(problem, "Write it as s3://connection@bucket/folder.")
    scheme, rest = match["scheme"], match["rest"]
    if scheme in _WITH_ACCOUNT and "@" not in rest.partition("/")[0]:
        problem = f"How Spark calls {url} cannot be derived: Hadoop needs the storage account."
        fix = (
            "Set [sparklineage] capture_location_in_spark, for example to "
            "abfss://container@account.dfs.core.windows.net/lineage."
        )
        raise SettingsError(problem, fix)
    return f"{_IN_HADOOP.get(scheme, scheme)}://{rest}"
