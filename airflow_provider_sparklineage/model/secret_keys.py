"""Which names of parameters, properties and settings stand for secrets."""

from __future__ import annotations

import re
from functools import lru_cache

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_USERS = frozenset({"user", "username"})
_SECRET_WORDS = frozenset({"pwd", "pass", "passphrase", "sas"})
_SECRET_LAST_WORDS = frozenset({"auth", "authorization", "signature", "sig"})
_SECRET_PARTS = (
    *("password", "passwd", "secret", "sharedaccess", "apikey", "accesskey", "accountkey"),
    *("privatekey", "storagekey", "encryptionkey", "masterkey"),
)
_SECRET_ENDS = ("token", "credential", "credentials")


@lru_cache(maxsize=4096)  # the same few keys come again with each text
def is_secret(key: str) -> bool:
    """Whether the name of a parameter, property or setting says that its value is a secret.

    :param key: alone or in words: ``password``, ``fs.s3a.secret.key``, ``X-Amz-Security-Token``
    """
    words = [word.lower() for word in _WORDS.findall(key)]
    flat = "".join(words)
    return (
        any(part in flat for part in _SECRET_PARTS)
        or flat.endswith(_SECRET_ENDS)
        or not _SECRET_WORDS.isdisjoint(words)
        or (bool(words) and words[-1] in _SECRET_LAST_WORDS)
    )


def is_credential(key: str) -> bool:
    """Whether a name in a URL or a connection string stands for a secret, or for a user."""
    return is_secret(key) or key.lower().replace("_", "") in _USERS
