"""An Azure Synapse that runs no batch: a Livy at the path of a Spark pool."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING

from tests import livy_double

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # escape sequences in the texts of Azure's client
    from airflow.providers.microsoft.azure.hooks.synapse import AzureSynapseHook
    from azure.core.pipeline.policies import SansIOHTTPPolicy
    from azure.synapse.spark import SparkClient

if TYPE_CHECKING:
    import pytest


class SynapseHandler(livy_double.LivyHandler):
    """Answers the requests of Azure's client as Livy's handler does."""

    def get(self):
        self.path = self.path[self.path.index("/batches") :]
        super().get()

    def _answer(self, status, document):
        super()._answer(200 if status == 201 else status, document)


def _client(credential, host, spark_pool, livy_api_version, subscription_id):
    """Make a client as the hook does, which sends no token: that is refused without TLS."""
    return SparkClient(
        credential,
        host,
        spark_pool,
        livy_api_version,
        subscription_id=subscription_id,
        authentication_policy=SansIOHTTPPolicy(),
    )


def synapse(monkeypatch: pytest.MonkeyPatch, **attributes):
    """Serve, as :func:`~tests.livy_double.livy` does, to the hook of Airflow."""
    monkeypatch.setattr(AzureSynapseHook, "_create_client", staticmethod(_client))
    return livy_double.livy(SynapseHandler, **attributes)


def connection(server):
    """Give Airflow's connection to the server, as JSON."""
    extra = {"tenantId": "tenant", "subscriptionId": "subscription"}
    login = {"login": "client", "password": "password", "extra": extra}
    return json.dumps({"conn_type": "azure_synapse", "host": server.url, **login})
