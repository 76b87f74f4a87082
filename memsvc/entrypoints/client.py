"""An HTTP client for the running worker."""

import json
import os
from collections.abc import Sequence

import requests

from memsvc.configuration.settings import Settings, worker_url
from memsvc.core.errors import StoreUnavailable

PROBE_SECONDS = (0.5, 1.25)
"""Timeouts in seconds for the health check: to connect and to read. Together below 2."""

ANSWER_SECONDS = (0.5, 30.0)
"""The same for the request that follows: a large store may take long."""

HEALTH = "/api/health"


def worker_address(settings: Settings) -> str:
    """The worker's URL: from MEMSVC_PORT if set, else from the worker's file, else the default."""
    if os.environ.get("MEMSVC_PORT", "").strip() in ("", "0"):  # 0: it picked one
        try:
            written = json.loads(settings.worker_file.read_text("utf-8"))
            return worker_url(str(written["host"]), int(written["port"]))
        except (OSError, ValueError, KeyError, TypeError):
            pass
    return worker_url(settings.host, settings.port)


def ask_worker(
    settings: Settings,
    method: str,
    path: str,
    pairs: Sequence[tuple[str, str]] = (),
    *,
    accept: str = "application/json",
) -> requests.Response:
    """The worker's answer. Raises StoreUnavailable with the command that starts a worker.

    The health check comes first, so that a stopped or hanging worker is reported within two
    seconds, while a healthy one may take longer to answer.
    """
    where = worker_address(settings)
    session = requests.Session()
    session.trust_env = False  # no proxy between us and loopback
    session.headers["Accept"] = accept
    try:
        health = session.get(f"{where}{HEALTH}", timeout=PROBE_SECONDS)
        if (method, path) == ("GET", HEALTH) and not pairs:
            return health
        return session.request(method, f"{where}{path}", params=list(pairs), timeout=ANSWER_SECONDS)
    except requests.RequestException as error:
        raise StoreUnavailable(_sentence(where, error)) from error
    finally:
        session.close()


def answers(where: str) -> bool:
    """Whether anything listens at the address of a worker and answers, or keeps us waiting."""
    session = requests.Session()
    session.trust_env = False  # no proxy between us and loopback
    try:
        session.get(f"{where}{HEALTH}", timeout=PROBE_SECONDS)
        return True
    except requests.ReadTimeout:
        return True
    except requests.RequestException:
        return False
    finally:
        session.close()


def answer_text(response: requests.Response) -> str:
    """The text of an answer, whatever its bytes."""
    return response.content.decode("utf-8", "replace")


def problem_text(response: requests.Response) -> str:
    """A problem as its sentence and the URL of help; other texts unchanged."""
    text = answer_text(response)
    try:
        problem = json.loads(text)
        return f"{problem['error']}\nhelp: {problem['help']}"
    except (ValueError, KeyError, TypeError):
        return text


def _sentence(where: str, error: requests.RequestException) -> str:
    if isinstance(error, requests.ReadTimeout):
        return (
            f"Something is listening on {where} but does not answer. "
            "Start a worker on a free port: MEMSVC_PORT=0 memsvc start"
        )
    return f"No worker is running at {where} ({type(error).__name__}). Start one: memsvc start"
