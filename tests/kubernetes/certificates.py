"""Keys and certificates of one Kubernetes: its own authority, its server, and who uses it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from pathlib import Path

_DAY = timedelta(days=1)
_SIGNS = x509.KeyUsage(
    **dict.fromkeys(("key_cert_sign", "crl_sign"), True),
    **dict.fromkeys(
        (
            *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
            *("key_agreement", "encipher_only", "decipher_only"),
        ),
        False,
    ),
)
"""Python 3.13 takes no authority without."""
_OF_SERVER, _OF_CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


def write(folder: Path, host: str) -> None:
    """Write pairs of ``NAME.crt`` and ``NAME.key``, and ``accounts.key``, which signs tokens.

    :param host: address of the server
    """
    authority, key = _authority(folder)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))])
    for name, user, group, usage in (
        ("server", "kube-apiserver", "", _OF_SERVER),
        ("admin", "tests", "system:masters", _OF_CLIENT),
        ("controllers", "system:kube-controller-manager", "", _OF_CLIENT),
    ):
        own = ec.generate_private_key(ec.SECP256R1())
        built = _builder(_name(user, group), own)
        built = built.issuer_name(authority.subject)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
        built = built.add_extension(issuer, critical=False)
        built = built.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if usage is _OF_SERVER:
            built = built.add_extension(names, critical=False)
        _write(folder, name, own, built.sign(key, hashes.SHA256()))
    _write_key(folder / "accounts.key", ec.generate_private_key(ec.SECP256R1()))


def _authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("tests")
    built = _builder(name, key).issuer_name(name)
    built = built.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    built = built.add_extension(_SIGNS, critical=True)
    certificate = built.sign(key, hashes.SHA256())
    _write(folder, "ca", key, certificate)
    return certificate, key


def _name(user: str, group: str = "") -> x509.Name:
    """Give a name as Kubernetes reads it: users are common names, groups are organisations."""
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _builder(name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _write(
    folder: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
) -> None:
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_key(folder / f"{name}.key", key)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
