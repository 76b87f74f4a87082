"""Runs the application under waitress and writes the file that tells clients its address."""

import errno
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from flask import Flask
from waitress.server import create_server

from memsvc.configuration.settings import Settings, worker_url
from memsvc.core.errors import StoreUnavailable
from memsvc.entrypoints.worker_file import kept_worker_file

MAX_HEADER = 1024 * 1024  # a query of 100 kB takes up to three times that when escaped
MAX_BODY = 64 * 1024 * 1024  # waitress hangs up beyond it; below it, the application answers 413


def run_server(app: Flask, settings: Settings, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; `ready` is called with the worker's address once it is listening.

    Raises StoreUnavailable when the address is in use.
    """
    server = _create(app, settings)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # stop as after Ctrl-C
    port = _port(server)
    try:
        with kept_worker_file(settings, port):
            ready(worker_url(settings.host, port))
            server.run()
    finally:
        server.close()


def _create(app: Flask, settings: Settings) -> Any:
    _require_free(settings)
    return create_server(
        app,
        host=settings.host,
        port=settings.port,
        threads=settings.threads,
        ident=None,
        max_request_header_size=MAX_HEADER,
        max_request_body_size=MAX_BODY,
        clear_untrusted_proxy_headers=True,
    )


def _port(server: Any) -> int:
    # a host name with several addresses has several sockets
    listening = getattr(server, "effective_listen", None) or [(None, server.effective_port)]
    return int(listening[0][1])


def _require_free(settings: Settings) -> None:
    """Raise StoreUnavailable if the port is in use: waitress would share it or show a traceback."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            raise StoreUnavailable(_bind_sentence(settings, error)) from error


def _bind_sentence(settings: Settings, error: OSError) -> str:
    where = f"{settings.host}:{settings.port}"
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {settings.port} is in use: another worker may be running (memsvc status). "
            f"Stop it, or choose another port: MEMSVC_PORT={settings.port + 1}"
        )
    return f"The worker cannot listen on {where}: {error.strerror}. Check MEMSVC_HOST, MEMSVC_PORT."
