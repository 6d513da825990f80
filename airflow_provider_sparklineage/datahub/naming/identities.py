"""Which dataset of DataHub a dataset of an event is, wherever the event mentions it.

Files that a table consists of are that table: the listener names what it reads and writes by its
files, and a symlink of type ``TABLE`` says whose they are. As in DataHub's own converter, that of
a Glue catalog is ``glue``, any other ``hive``; not so

- where a dataset is a table or a topic as it is: a stream of Flink's that is one of Kafka stays it
- where the catalog is of Iceberg, and neither Hive's nor Glue's: those DataHub ingests as
  ``iceberg``.

All names that a dataset has are its: columns mention it by any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.naming import urns
from airflow_provider_sparklineage.datahub.naming.namespaces import known_of
from airflow_provider_sparklineage.datahub.naming.platforms import is_on_server, placed
from airflow_provider_sparklineage.event.document import name_of
from airflow_provider_sparklineage.model.datasets import DatasetName, canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.datahub.options import Conversion


class Identity(NamedTuple):
    """A dataset of DataHub.

    :param platform: its name, e.g. ``s3``
    :param name: without the instance; not encoded
    :param instance: of the platform; empty for none
    """

    platform: str
    name: str
    instance: str
    env: str

    @property
    def urn(self) -> str:
        """Give the URN of the dataset."""
        name = f"{self.instance}.{self.name}" if self.instance else self.name
        return urns.dataset(self.platform, name, self.env)

    @property
    def instance_urn(self) -> str:
        """Give the URN of the platform's instance; of a platform that has several."""
        return urns.platform_instance(self.platform, self.instance)


class Table(NamedTuple):
    """The table whose files a dataset is.

    :param platform: as the catalog says; empty where the namespace does
    """

    name: DatasetName
    platform: str = ""


def identity(name: DatasetName, how: Conversion, platform: str = "") -> Identity:
    """Give the dataset that a name is of.

    :param platform: if it is known better than by the namespace
    """
    known = known_of(name.namespace, how.namespaces)
    place = placed(name, known.platform or platform)
    text = f"{known.name_prefix}{place.name}"
    instance = known.platform_instance
    return Identity(
        place.platform,
        text.lower() if known.lower_case else text,
        how.platform_instance if instance is None else instance,
        known.env or how.env,
    )


def tables(datasets: Iterable[dict[str, Any]], *, follow: bool) -> dict[DatasetName, Table]:
    """Find the tables among the datasets of an event.

    :param datasets: documents of both sides, each with a namespace and a name
    :param follow: whether files are the table that a symlink names, or the table is its files
    :return: by each of their names; what is not there is what it is called
    """
    theirs: dict[DatasetName, Table] = {}
    own: dict[DatasetName, Table] = {}  # of a dataset whose symlink another document may have
    for document in datasets:
        name = canonical(name_of(document))
        links = _symlinks(document)
        named = [link for link, type_ in links if type_ == "TABLE"]
        is_table = follow and named and not is_on_server(name)
        of = Table(min(named, key=_preference), _platform(document, named)) if is_table else None
        for one in (name, *(link for link, _ in links)):
            (theirs if of else own).setdefault(one, of or Table(name))
    return own | theirs


def _symlinks(document: dict[str, Any]) -> list[tuple[DatasetName, str]]:
    """Give the other names of a dataset with their types; not what is malformed."""
    found = lenient.items(lenient.at(document, "facets", "symlinks", "identifiers"))
    return [
        (canonical(name_of(one)), str(one.get("type")).upper()) for one in found if is_named(one)
    ]


def is_named(document: dict[str, Any]) -> bool:
    """Whether something has the name of a dataset."""
    namespace, name = document.get("namespace"), document.get("name")
    return isinstance(namespace, str) and isinstance(name, str) and bool(name)


def _preference(name: DatasetName) -> tuple[bool, bool, DatasetName]:
    """Rank tables: Glue's, Hive's, others'; the order in the facet is none that lasts."""
    platform = placed(name).platform
    return platform != "glue", platform != "hive", name


def _platform(document: dict[str, Any], named: Iterable[DatasetName]) -> str:
    if any(map(is_on_server, named)):  # which says what it is
        return ""
    catalog = lenient.mapping(lenient.at(document, "facets", "catalog"))
    of_iceberg = catalog.get("framework") == "iceberg" and catalog.get("type") not in _METASTORES
    return "iceberg" if of_iceberg else "hive"


_METASTORES = ("hive", "glue")
