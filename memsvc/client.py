"""Talking to the running worker over HTTP."""

import json
import os
from collections.abc import Sequence

import requests

from memsvc.errors import StoreUnavailable
from memsvc.settings import Settings, address

TIMEOUTS = (2.0, 60.0)
"""Seconds to wait for the worker to be there, and for its answer."""


def worker_address(settings: Settings) -> str:
    """Where the worker is: at MEMSVC_PORT if set, else where its file says, else the default."""
    if "MEMSVC_PORT" not in os.environ:
        try:
            told = json.loads(settings.worker_file.read_text("utf-8"))
            return address(str(told["host"]), int(told["port"]))
        except (OSError, ValueError, KeyError, TypeError):
            pass
    return address(settings.host, settings.port)


def ask_worker(
    settings: Settings,
    method: str,
    path: str,
    pairs: Sequence[tuple[str, str]] = (),
    *,
    accept: str = "application/json",
) -> requests.Response:
    """The worker's answer. Raises StoreUnavailable with the command that starts it."""
    address = worker_address(settings)
    session = requests.Session()
    session.trust_env = False  # a proxy has no business between us and loopback
    try:
        return session.request(
            method,
            f"{address}{path}",
            params=list(pairs),
            headers={"Accept": accept},
            timeout=TIMEOUTS,
        )
    except requests.RequestException as error:
        raise StoreUnavailable(
            f"No worker answers at {address} ({type(error).__name__}). Start it: memsvc serve"
        ) from error
    finally:
        session.close()
