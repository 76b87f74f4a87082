"""Chroma on a server. Several stores can share it, each with its own prefix."""

import contextlib
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

import chromadb
import requests
from chromadb.api.client import Client
from chromadb.errors import NotFoundError

from memsvc.adapters.indexes.chroma import ChromaIndex, in_one_line, quiet_settings
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.records import Kind

PORTS = {"http": 8000, "https": 443}


def open_chroma_http(url: str, prefix: str, dimension: int, *, timeout: float = 5.0) -> ChromaIndex:
    """The index on the server at `http[s]://host[:port]`, in collections named `prefix-kind`.

    The prefix consists of letters, digits and `._-`; only one process may write under it. `timeout`
    is in seconds, per answer. Raises SemanticUnavailable for a bad URL; an unreachable server shows
    at the first call.
    """
    return ChromaIndex(_Server(url, prefix, timeout), dimension)


class _Server:
    """A Chroma server. Batches are small, because it must write each within the timeout."""

    batch = 250

    def __init__(self, url: str, prefix: str, timeout: float) -> None:
        self._scheme, self._host, self._port = _address(url)
        self._url = f"{self._scheme}://{self._host}:{self._port}"
        self._prefix = prefix
        self._timeout = timeout

    def name(self, kind: Kind) -> str:
        return f"{self._prefix}-{kind}"

    def connect(self, check: Callable[[Client], None]) -> Client:
        # Chroma's client has no timeout, not even in its constructor, so we check the server first.
        requests.get(f"{self._url}/api/v2/heartbeat", timeout=self._timeout).raise_for_status()
        secure = self._scheme == "https"
        made = chromadb.HttpClient(self._host, self._port, secure, settings=quiet_settings())
        client = cast(Client, made)
        for session in _sessions(client):
            session.timeout = self._timeout
        try:
            check(client)
        except BaseException:
            self.disconnect(client)
            raise
        return client

    def disconnect(self, client: Client) -> None:
        client.close()
        for session in _sessions(client):
            session.close()

    def wipe(self, client: Client | None) -> None:
        client = client or self.connect(lambda _: None)
        for kind in Kind:
            with contextlib.suppress(NotFoundError):
                client.delete_collection(self.name(kind))
        self.disconnect(client)

    def release(self) -> None:
        """Nothing to release besides the client."""

    def explain(self, error: BaseException) -> str:
        return (
            f"The Chroma server at {self._url} cannot be used ({in_one_line(error)}); start it, "
            "or choose another index with MEMSVC_SEMANTIC."
        )


def _sessions(client: Any) -> list[Any]:
    """The HTTP sessions of a client: it has two, without timeout, and closes neither."""
    return [part._server._session for part in (client, client._admin_client)]


def _address(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of a URL."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in PORTS and parts.hostname:
            return parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme]
    raise SemanticUnavailable(
        f"{url!r} is not the URL of a Chroma server; set MEMSVC_CHROMA_URL to one such as "
        "http://127.0.0.1:8000."
    )
