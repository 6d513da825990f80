"""What the transport's configuration says of the conversion; see docs/datahub.md for the table."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datahub.naming.namespaces import Namespace


class FieldPaths(StrEnum):
    """How the fields of a schema are named in DataHub; see :mod:`.field_paths`."""

    V1 = "v1"
    """``address.street``: two fields can have one path."""
    V2 = "v2"
    """``[version=2.0].[type=struct].[type=struct].address.[type=string].street``; a column that is
    not nested has such a path where the connector of its platform gives it one."""


class Conversion(Frozen, frozen=True):
    """How events are converted.

    :param env: the environment of datasets (``FabricType``)
    :param cluster: of DataFlows; DataHub's own Airflow plugin calls it ``prod``
    :param platform_instance: of datasets, flows and jobs; empty if there is only one
    :param field_paths: names of fields, above all of nested ones
    :param indirect: whether filters, joins and groupings are part of column lineage
    :param symlinks: whether files that a table consists of are that table
    :param namespaces: what is known of some of them, and before all of the above
    """

    env: str = "PROD"
    cluster: str = "prod"
    platform_instance: str = ""
    field_paths: FieldPaths = FieldPaths.V2
    indirect: bool = True
    symlinks: bool = True
    namespaces: tuple[Namespace, ...] = ()


DEFAULT_CONVERSION = Conversion()
