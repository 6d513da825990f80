"""The Spark of a service's release, by the label that a submission has.

A listener for another Scala would end the job. So old releases are here, too, although their Spark
is not tested: ``spark_version`` is for releases that are not here, and may be that of another
service. The listener takes Spark from 3.2 on.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Release(NamedTuple):
    """Releases of a service with the same Spark.

    :param label: a pattern of the labels
    :param spark: the versions of Spark and of Scala
    """

    label: str
    spark: tuple[str, str]


# As published on 2026-11-30, by series, in what an entry names. Not found there, and taken from the
# series around them: the Scala of Dataproc's images 2.2 and 2.3, Serverless 2.3, and old releases.
EMR = (
    # Amazon EMR Release Guide, "Application versions in Amazon EMR 7.x releases" and "Spark release
    # history"; labels of EMR on EKS have -latest or a date at their end
    Release(r"emr-7\.\d+\.\d+(-.*)?", ("3.5", "2.12")),
    Release(r"emr-6\.1[2-5]\.\d+(-.*)?", ("3.4", "2.12")),
    Release(r"emr-6\.(8|9|10|11)\.\d+(-.*)?", ("3.3", "2.12")),
    Release(r"emr-6\.[67]\.\d+(-.*)?", ("3.2", "2.12")),
    Release(r"emr-6\.[0-5]\.\d+(-.*)?", ("3.1", "2.12")),
    Release(r"emr-5\.\d+\.\d+(-.*)?", ("2.4", "2.11")),
)
GLUE = (
    # AWS Glue Developer Guide, "AWS Glue versions"
    Release(r"5\.[01]", ("3.5", "2.12")),
    Release(r"4\.0", ("3.3", "2.12")),
    Release(r"3\.0", ("3.1", "2.12")),
    Release(r"[012]\.\d", ("2.4", "2.11")),
    Release(r"6\.0", ("4.1", "2.13")),
)
DATAPROC = (
    # Dataproc, "Supported Dataproc image versions"
    Release(r"2\.[23]([.-].*)?", ("3.5", "2.12")),
    Release(r"2\.1([.-].*)?", ("3.3", "2.12")),
    Release(r"2\.0([.-].*)?", ("3.1", "2.12")),
    # Dataproc, "Release notes" of 2025-09-08
    Release(r"3\.0([.-].*)?", ("4.0", "2.13")),
)
DATAPROC_SERVERLESS = (
    # Serverless for Apache Spark, "Runtime releases"
    Release(r"1\.0([.-].*)?", ("3.2", "2.12")),
    Release(r"1\.1([.-].*)?", ("3.3", "2.12")),
    Release(r"1\.2([.-].*)?", ("3.5", "2.12")),
    Release(r"2\.0([.-].*)?", ("3.3", "2.13")),
    Release(r"2\.1([.-].*)?", ("3.4", "2.13")),
    Release(r"2\.[23]([.-].*)?", ("3.5", "2.13")),
    Release(r"3\.0([.-].*)?", ("4.0", "2.13")),
)
DATABRICKS = (
    # Databricks Runtime release notes; the label names its Scala
    Release(r"1[456]\.\d+\.x-.*scala2\.12", ("3.5", "2.12")),
    Release(r"16\.\d+\.x-.*scala2\.13", ("3.5", "2.13")),
    Release(r"17\.\d+\.x-.*scala2\.13", ("4.0", "2.13")),
)


def spark_of(releases: tuple[Release, ...], label: object) -> tuple[str, str] | None:
    """Give the versions of Spark and of Scala of a release; None if they are not known.

    :param label: the release's label, such as ``emr-7.5.0`` or ``15.4.x-scala2.12``
    """
    for release in releases:
        if re.fullmatch(release.label, str(label)):
            return release.spark
    return None
