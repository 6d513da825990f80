"""What the transport is configured to do, and what it answers to what makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_sparklineage.datahub import configuration
from airflow_provider_sparklineage.datahub.configuration import (
    ENVS,
    Conversion,
    FieldPaths,
    Namespace,
)
from airflow_provider_sparklineage.model.exceptions import SettingsError

SERVER = {"server": "http://gms:8080"}


def test_little_has_to_be_configured():
    found = configuration.read({"type": "…DataHubTransport", "name": "datahub", **SERVER})

    assert found.conversion == Conversion()
    assert found.folder is None
    assert (found.server.url, found.server.timeout, found.server.is_async) == (
        "http://gms:8080",
        8,
        True,
    )
    assert found.server.bearer() is None


def test_all_can_be_configured():
    found = configuration.read(
        {
            "server": " https://datahub.example.com/api/gms/ ",
            "token": "t0k",
            "env": "dev",
            "cluster": "test",
            "platform_instance": "eu",
            "field_paths": "v1",
            "indirect": False,
            "symlinks": False,
            "namespaces": {"oss://*": {"platform": "oss"}},
            "timeout": 20,
            "async": False,
            "verify": "/etc/ca.pem",
            "cert": ["/etc/client.pem", "/etc/client.key"],
            "headers": {"X-Tenant": "a"},
        }
    )

    assert found.conversion == Conversion(
        "DEV",
        "test",
        "eu",
        FieldPaths.V1,
        indirect=False,
        symlinks=False,
        namespaces=(Namespace("oss://*", "oss"),),
    )
    server = found.server
    assert (server.url, server.bearer()) == ("https://datahub.example.com/api/gms", "Bearer t0k")
    assert (server.timeout, server.is_async, server.verify) == (20, False, "/etc/ca.pem")
    assert server.cert == ("/etc/client.pem", "/etc/client.key")
    assert server.headers == (("X-Tenant", "a"),)


def test_environment_variables_give_texts():
    found = configuration.read(
        {**SERVER, "indirect": "False", "async": "false", "timeout": "2.5", "verify": "false"}
    )

    assert not found.conversion.indirect
    assert (found.server.is_async, found.server.timeout, found.server.verify) == (False, 2.5, False)


@pytest.mark.parametrize(
    ("auth", "bearer"),
    [
        ({"type": "api_key", "apiKey": "t0k"}, "Bearer t0k"),
        ({}, None),
    ],
    ids=["key", "nothing"],
)
def test_authentication_is_that_of_openlineage(auth, bearer):
    assert configuration.read({**SERVER, "auth": auth}).server.bearer() == bearer


def test_a_token_is_taken_with_the_word_before_it():
    assert configuration.read({**SERVER, "token": "Bearer t0k"}).server.bearer() == "Bearer t0k"


def test_a_folder_can_be_in_the_users_home(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    assert configuration.read({"folder": "~/mcps"}).folder == Path("/home/ada/mcps")


def test_a_folder_takes_the_place_of_a_server():
    found = configuration.read({"folder": "/data/datahub", "env": "QA"})

    assert (found.folder, found.server) == (Path("/data/datahub"), None)
    assert found.conversion.env == "QA"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "neither to a server nor to a folder"),
        ({**SERVER, "folder": "/x"}, "to a server and to a folder"),
        ({"folder": "/x", "token": "t"}, "Remove token"),
        ({"folder": "/x", "timeout": 3, "headers": {}}, "Remove timeout, headers"),
        ({"folder": " "}, "no text as folder"),
        ({"folder": "a\0b"}, "impossible folder"),
        ({**SERVER, "headers": {"X-Key": "se\ncret"}}, "headers that cannot be sent"),
        ({"url": "http://gms:8080"}, "unknown key 'url'.*There are: server, token"),
        ({**SERVER, "servers": 1}, "Did you mean server"),
        ({**SERVER, "platform_instanc": "x"}, "Did you mean platform_instance"),
        ({"server": "gms:8080"}, "no URL as its server"),
        ({"server": "ftp://gms"}, "no URL as its server"),
        ({"server": "http://[gms"}, "no URL as its server"),
        ({"server": "http://gms:x"}, "no URL as its server"),
        ({"server": "http://gms?token=s3cr3t"}, "no URL as its server"),
        ({"server": "http://me:s3cr3t@gms"}, "a token goes into the key token"),
        ({"server": 8080}, "no text as server"),
        ({**SERVER, "token": "s3cr3t", "auth": {"type": "api_key"}}, "a token and auth"),
        ({**SERVER, "token": "s3cr3t\r\nX: y"}, "fits into no header"),
        ({**SERVER, "auth": {"type": "s3cr3t"}}, "auth that cannot be used"),
        ({**SERVER, "auth": "s3cr3t"}, "auth that is no object"),
        ({**SERVER, "env": "PRODUCTION"}, "unknown env 'PRODUCTION'.*NON_PROD"),
        ({**SERVER, "field_paths": "v3"}, "There are: v1, v2"),
        ({**SERVER, "indirect": "perhaps"}, "neither true nor false"),
        ({**SERVER, "timeout": 0}, "impossible timeout"),
        ({**SERVER, "timeout": "nan"}, "impossible timeout"),
        ({**SERVER, "timeout": "soon"}, "impossible timeout"),
        ({**SERVER, "cert": 1}, "impossible cert"),
        ({**SERVER, "headers": "X: s3cr3t"}, "headers that are no object"),
        ({**SERVER, "namespaces": {"x": {"platfrom": 1}}}, "Did you mean platform"),
        ({**SERVER, "cluster": 1}, "no text as cluster"),
    ],
)
def test_what_is_wrong_is_named(given, message):
    with pytest.raises(SettingsError, match=message) as raised:
        configuration.read(given)

    assert "s3cr3t" not in str(raised.value)


def test_nothing_secret_is_in_a_representation():
    given = {**SERVER, "token": "s3cr3t", "headers": {"X-Key": "s3cr3t"}}

    assert repr(configuration.read(given).server) == "Server('http://gms:8080')"
    assert "s3cr3t" not in repr(configuration.read(given))


def test_the_environments_are_those_of_datahub():
    pytest.importorskip("datahub.metadata")
    from datahub.metadata.schema_classes import FabricTypeClass

    names = {name for name in vars(FabricTypeClass) if name.isupper()}

    assert names
    assert names <= set(ENVS)  # the newest has one more than the others
