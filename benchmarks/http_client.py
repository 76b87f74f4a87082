"""A client with one keep-alive connection, as thin as the standard library allows."""

import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_from_bytes

NO_ANSWER = 0
"""The status of a request without an answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, and the seconds that it took."""

    status: int
    body: bytes
    seconds: float

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def url(path: str, parameters: Mapping[str, object]) -> str:
    """A path with its query string; a tuple repeats its name, lone surrogates and raw bytes are
    escaped unchanged.
    """
    given = (
        (n, value if isinstance(value, tuple) else (value,)) for n, value in parameters.items()
    )
    pairs = (f"{name}={_escaped(value)}" for name, values in given for value in values)
    return f"{path}?{'&'.join(pairs)}" if parameters else path


def _escaped(value: object) -> str:
    text = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    return quote_from_bytes(text, safe="")


class Client:
    """Sends one request after the other."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=120)

    def get(self, url: str, accept: str = "application/json") -> Answer:
        """The answer to a request; a broken connection gives one with NO_ANSWER."""
        started = time.perf_counter()
        try:
            self._connection.request("GET", url, headers={"Accept": accept})
            response = self._connection.getresponse()
            status, body = response.status, response.read()
        except (http.client.HTTPException, OSError) as error:
            self._connection.close()
            status, body = NO_ANSWER, repr(error).encode()
        return Answer(status, body, time.perf_counter() - started)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()
