"""An Airflow asked as a program asks it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

TIMEOUT_S = 60  # of a server on a machine that has other work


class Api:
    """Airflow's API server.

    :param passwords: of its users
    """

    def __init__(self, url: str, passwords: dict[str, str]) -> None:
        self.url = url
        self._passwords = passwords

    def get(self, path: str, token: str | None = None) -> tuple[int, dict[str, Any]]:
        """Give status and JSON."""
        return self._ask("GET", path, token)

    def patch(self, path: str, body: object, token: str) -> int:
        """Change something; gives the status."""
        return self._ask("PATCH", path, token, body)[0]

    def post(self, path: str, body: object, token: str) -> int:
        """Ask for something to be done; gives the status."""
        return self._ask("POST", path, token, body)[0]

    def token(self, user: str) -> str:
        """Log in."""
        credentials = {"username": user, "password": self._passwords[user]}
        _, answer = self._ask("POST", "/auth/token", body=credentials)
        token: str = answer["access_token"]
        return token

    def _ask(
        self, method: str, path: str, token: str | None = None, body: object = None
    ) -> tuple[int, dict[str, Any]]:
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, content, method=method)
        request.add_header("Content-Type", "application/json")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"{}")
