"""What makes a mini cluster a secure one: a KDC, certificates, and the properties that demand both.

The KDC is Hadoop's own for tests, Apache Kerby in a JVM. Daemons prove by Kerberos who they are,
all calls and blocks are encrypted, and WebHDFS is there by HTTPS alone.
"""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import requests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

REALM = "EXAMPLE.COM"  # the KDC's default
HOST = "localhost"
SUPERUSER = "hadoop"
STRANGER = "stranger"
"""Who has a ticket, but is in no group of those who submit."""
MADE = ("kdc", "tls", "tickets")
"""Folders that a secure cluster makes."""
_DAEMONS, _WEB = f"{SUPERUSER}/{HOST}", f"HTTP/{HOST}"
SUPERUSER_PRINCIPAL = f"{_DAEMONS}@{REALM}"
_PASSWORD = "of-a-test"
_KDC_S = 60


def keytab(folder: Path) -> Path:
    """Give the file with the keys of all principals."""
    return folder / "kdc" / "keytab"


def certificate(folder: Path) -> Path:
    """Give the certificate that all web servers have, which signed itself."""
    return folder / "tls" / "certificate.pem"


def environment(folder: Path) -> dict[str, str]:
    """Give the variables by which programs and JVMs find this KDC, not the machine's."""
    krb5_conf = folder / "kdc" / "krb5.conf"
    return {
        "KRB5_CONFIG": str(krb5_conf),
        "JDK_JAVA_OPTIONS": f"-Djava.security.krb5.conf={krb5_conf}",
    }


def asking(folder: Path, principal: str) -> requests.Session:
    """Give what sends requests to web servers by a principal's key."""
    import spnego
    from requests_kerberos import HTTPKerberosAuth

    session = requests.Session()
    key = spnego.KerberosKeytab(keytab=str(keytab(folder)), principal=principal)
    session.auth = HTTPKerberosAuth(principal=key)
    session.verify = str(certificate(folder))
    session.trust_env = False  # else REQUESTS_CA_BUNDLE wins
    return session


def ticket(folder: Path, user: str, lifetime_s: int | None = None) -> Path:
    """Get a ticket for a user with the user's key, as ``kinit -kt`` does; give its file."""
    import krb5

    context = krb5.init_context()  # it reads KRB5_CONFIG
    principal = krb5.parse_name_flags(context, f"{user}@{REALM}".encode())
    options = krb5.get_init_creds_opt_alloc(context)
    if lifetime_s is not None:
        krb5.get_init_creds_opt_set_tkt_life(options, lifetime_s)
    keys = krb5.kt_resolve(context, str(keytab(folder)).encode())
    credentials = krb5.get_init_creds_keytab(context, principal, options, keys)
    file = folder / "tickets" / f"{user}-{lifetime_s or 'long'}"
    file.parent.mkdir(exist_ok=True)
    cache = krb5.cc_resolve(context, str(file).encode())
    krb5.cc_initialize(context, cache, principal)
    krb5.cc_store_cred(context, cache, credentials)
    return file


def kdc(folder: Path, java: str, jars: str, users: Sequence[str]) -> list[str]:
    """Give the command that runs the KDC, which makes the keys of daemons and users."""
    made = folder / "kdc"
    made.mkdir()
    (made / "properties").write_text("min.ticket.lifetime=1\n")  # for tickets that expire
    return [
        *(java, "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", jars),
        *("org.apache.hadoop.minikdc.MiniKdc", str(made), str(made / "properties")),
        *(str(keytab(folder)), _DAEMONS, _WEB, *users, STRANGER),
    ]


def wait_for_kdc(folder: Path, check: Callable[[], None]) -> None:
    """Wait until the KDC prints that it runs; it writes the keys before.

    :param check: raises an error if a daemon has ended
    """
    ends = time.monotonic() + _KDC_S
    while "<CTRL-C>" not in (folder / "kdc.log").read_text(errors="replace"):
        check()
        if time.monotonic() > ends:
            message = f"The KDC has not started within {_KDC_S} s."
            raise RuntimeError(message)
        time.sleep(0.1)


def make_certificate(folder: Path, keytool: Path) -> None:
    """Make the key and the certificate of the web servers."""
    store = certificate(folder).with_name("keys.p12")
    store.parent.mkdir()
    options = ["-keystore", str(store), "-storepass", _PASSWORD, "-alias", "web"]
    names = "san=dns:localhost,ip:127.0.0.1"
    made = ["-genkeypair", "-keyalg", "RSA", "-dname", f"CN={HOST}", "-ext", names]
    shown = ["-exportcert", "-rfc", "-file", str(certificate(folder))]
    for command in ([*made, "-storetype", "PKCS12"], shown):
        subprocess.run([str(keytool), *command, *options], check=True, capture_output=True)


def properties(folder: Path, addresses: Mapping[str, str]) -> dict[str, str]:
    """Give the properties of the daemons, and of those who use them in a secure cluster."""
    by_keytab = {
        f"{who}.{kind}": value
        for who, principal, names in (
            ("dfs.namenode", _DAEMONS, ("kerberos.principal", "keytab.file")),
            ("dfs.datanode", _DAEMONS, ("kerberos.principal", "keytab.file")),
            ("dfs.web.authentication", _WEB, ("kerberos.principal", "kerberos.keytab")),
            ("hadoop.http.authentication", _WEB, ("kerberos.principal", "kerberos.keytab")),
            ("yarn.resourcemanager", _DAEMONS, ("principal", "keytab")),
            ("yarn.nodemanager", _DAEMONS, ("principal", "keytab")),
        )
        for kind, value in zip(names, (f"{principal}@{REALM}", str(keytab(folder))), strict=True)
    }
    return {
        **by_keytab,
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.authorization": "true",
        # Of all pages and APIs; without it WebHDFS believes user.name, and YARN everybody.
        "hadoop.http.filter.initializers": (
            "org.apache.hadoop.security.AuthenticationFilterInitializer"
        ),
        "hadoop.http.authentication.type": "kerberos",
        "hadoop.http.authentication.signature.secret.file": str(keytab(folder)),  # it is secret
        "hadoop.rpc.protection": "privacy",
        "dfs.block.access.token.enable": "true",
        "dfs.data.transfer.protection": "privacy",
        "dfs.http.policy": "HTTPS_ONLY",
        "dfs.namenode.https-address": addresses["webhdfs"],
        "dfs.datanode.https.address": "127.0.0.1:0",
        "ssl.server.keystore.location": str(certificate(folder).with_name("keys.p12")),
        "ssl.server.keystore.type": "PKCS12",
        "ssl.server.keystore.password": _PASSWORD,
        "ssl.server.keystore.keypassword": _PASSWORD,
    }
