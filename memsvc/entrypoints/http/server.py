"""Runs the application under waitress and writes the file that tells clients its address."""

import contextlib
import errno
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from flask import Flask
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.server import TcpWSGIServer

from memsvc.configuration.settings import Settings, worker_url
from memsvc.core.errors import StoreUnavailable
from memsvc.core.limits import deadline
from memsvc.entrypoints.http.channel import MAX_BODY, MAX_HEADER, MAX_IDLE, Channel
from memsvc.entrypoints.http.lanes import Lanes
from memsvc.entrypoints.worker_file import kept_worker_file

MAX_CONNECTIONS: Final = 2_000
"""Connections held at the same time; each takes a descriptor."""

MAX_ACCEPTED: Final = 64
"""Connections accepted before others are served again."""

UNBOUNDED: Final = 2**62
"""Bytes of an answer that a slow reader leaves to us: they go to a file, and no thread waits."""

STOP_SECONDS: Final = 1.5
"""Seconds that requests may still run after a signal to stop; then they are interrupted."""

FLUSH_SECONDS: Final = 0.3
"""Seconds more in which the last answers are sent."""

SWITCH_SECONDS: Final = 0.0005
"""Seconds that a busy thread keeps Python's lock from others: health must answer meanwhile."""


class Listener(TcpWSGIServer):
    """One listening socket."""

    channel_class = Channel

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.effective_port)  # type: ignore[attr-defined]

    def maintenance(self, now: float) -> None:
        """Hang up on clients that are silent, slow or idle."""
        channels: Any = self.active_channels
        for channel in channels.values():
            channel.will_close = channel.will_close or channel.is_stale(now)

    def handle_accept(self) -> None:
        """Accept what is waiting, not one connection a turn."""
        channels: Any = self.active_channels
        for _ in range(MAX_ACCEPTED):
            held = len(channels)
            super().handle_accept()
            if len(channels) == held or held >= MAX_CONNECTIONS:
                break

    def stop_listening(self) -> None:
        """Accept no more connections, and close those without a request."""
        self.accepting = False
        wasyncore.dispatcher.close(self)  # not its trigger, which the last answers need
        channels: Any = self.active_channels
        for channel in list(channels.values()):
            if not channel.is_answering():
                channel.handle_close()

    def is_answering(self) -> bool:
        """Whether any request is being answered."""
        channels: Any = self.active_channels
        return any(channel.is_answering() for channel in list(channels.values()))


def run_server(app: Flask, settings: Settings, ready: Callable[[str], None]) -> None:
    """Serve until a signal to stop; `ready` is called with the address once it is listening.

    Requests that run then are answered, within STOP_SECONDS. Raises StoreUnavailable when the
    address is in use.
    """
    _require_free(settings)
    _allow_descriptors(MAX_CONNECTIONS + 256)
    sys.setswitchinterval(SWITCH_SECONDS)
    sockets: dict[int, Any] = {}
    listeners = _listen(app, settings, sockets)
    stopping = _stop_on_signal(listeners[0])
    port = listeners[0].port
    try:
        with kept_worker_file(settings, port):
            ready(worker_url(settings.host, port))
            while not stopping.is_set():
                wasyncore.loop(1, use_poll=True, map=sockets, count=1)
            _finish(listeners, sockets)
    finally:
        listeners[0].task_dispatcher.shutdown()
        wasyncore.close_all(sockets)


def _listen(app: Flask, settings: Settings, sockets: dict[int, Any]) -> list[Listener]:
    """A listener for each address of the host, all with the same port and the same lanes."""
    adjustments = Adjustments(
        host=settings.host,
        port=settings.port,
        ident=None,
        max_request_header_size=MAX_HEADER,
        max_request_body_size=MAX_BODY,
        outbuf_high_watermark=UNBOUNDED,
        connection_limit=MAX_CONNECTIONS,
        channel_timeout=int(MAX_IDLE),
        cleanup_interval=2,
        clear_untrusted_proxy_headers=True,
    )
    lanes: Any = Lanes(settings.threads)
    addresses: Any = adjustments.listen
    return [
        Listener(app, sockets, dispatcher=lanes, adj=adjustments, sockinfo=address)
        for address in addresses
    ]


def _stop_on_signal(listener: Listener) -> threading.Event:
    """An event that SIGTERM and Ctrl-C set; it wakes the loop."""
    stopping = threading.Event()

    def stop(*_: object) -> None:
        if not stopping.is_set():
            stopping.set()
            listener.pull_trigger()

    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, stop)
    return stopping


def _finish(listeners: list[Listener], sockets: dict[int, Any]) -> None:
    """Answer what is running, and interrupt what takes too long."""
    deadline.end_all_within(STOP_SECONDS)
    end = time.monotonic() + STOP_SECONDS + FLUSH_SECONDS
    for listener in listeners:
        listener.stop_listening()
    while any(each.is_answering() for each in listeners) and time.monotonic() < end:
        wasyncore.loop(0.05, use_poll=True, map=sockets, count=1)


def _allow_descriptors(wanted: int) -> None:
    """Allow this process so many open files, as far as the system lets it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


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
