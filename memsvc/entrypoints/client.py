"""Talking to the running worker over HTTP."""

import json
import os
from collections.abc import Sequence

import requests

from memsvc.configuration.settings import Settings, address
from memsvc.core.errors import StoreUnavailable

PROBE = (0.5, 1.25)
"""Seconds to wait for the worker to be there, and for a sign of life. Together below 2."""

ANSWER = (0.5, 30.0)
"""Seconds to wait once it lives: a search over a large store may take its time."""

ALIVE = "/api/health"


def worker_address(settings: Settings) -> str:
    """Where the worker is: at MEMSVC_PORT if set, else where its file says, else the default."""
    if os.environ.get("MEMSVC_PORT", "").strip() in ("", "0"):  # 0: it picked one itself
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
    """The worker's answer. Raises StoreUnavailable with the command that starts it.

    A sign of life is asked for first, so that a worker that is down or stuck is told of within
    two seconds, while one that lives may take longer to answer.
    """
    where = worker_address(settings)
    session = requests.Session()
    session.trust_env = False  # a proxy has no business between us and loopback
    session.headers["Accept"] = accept
    try:
        alive = session.get(f"{where}{ALIVE}", timeout=PROBE)
        if (method, path) == ("GET", ALIVE) and not pairs:
            return alive
        return session.request(method, f"{where}{path}", params=list(pairs), timeout=ANSWER)
    except requests.RequestException as error:
        raise StoreUnavailable(_sentence(where, error)) from error
    finally:
        session.close()


def answer_text(response: requests.Response) -> str:
    """The text of an answer, whatever bytes came."""
    return response.content.decode("utf-8", "replace")


def problem_text(response: requests.Response) -> str:
    """A refusal as its sentence and the address of help; as it came if it is no problem."""
    text = answer_text(response)
    try:
        problem = json.loads(text)
        return f"{problem['error']}\nhelp: {problem['help']}"
    except (ValueError, KeyError, TypeError):
        return text


def _sentence(where: str, error: requests.RequestException) -> str:
    if isinstance(error, requests.ReadTimeout):
        return (
            f"Something listens at {where} but does not answer. "
            "Start a worker on a free port: MEMSVC_PORT=0 memsvc start"
        )
    return f"No worker answers at {where} ({type(error).__name__}). Start it: memsvc start"
