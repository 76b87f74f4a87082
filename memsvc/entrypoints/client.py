"""An HTTP client for the running worker."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import requests

from memsvc.answers.quoting import visible
from memsvc.configuration.settings import Settings, worker_url
from memsvc.core.errors import MISSING, StoreUnavailable
from memsvc.entrypoints.token_file import read_token
from memsvc.entrypoints.worker_file import read_worker_file

PROBE_SECONDS = (0.5, 1.25)
"""Timeouts in seconds for the health check: to connect and to read. Together below 2."""

ANSWER_SECONDS = (0.5, 30.0)
"""The same for the request that follows: a large store may take long."""

WORK_SECONDS = (0.5, 600.0)
"""The same for a request with a body: it changes records, maybe many."""

HEALTH = "/api/health"


def worker_address(settings: Settings) -> str:
    """The worker's URL: from MEMSVC_PORT if set, else from the worker's file, else the default."""
    port_set = os.environ.get("MEMSVC_PORT", "").strip() not in ("", "0")  # 0: it picked one
    if not port_set and (worker := read_worker_file(settings.worker_file)):
        return worker.address
    return worker_url(settings.host, settings.port)


def ask_worker(
    settings: Settings,
    method: str,
    path: str,
    pairs: Sequence[tuple[str, str]] = (),
    *,
    accept: str = "application/json",
    body: Mapping[str, Any] | None = None,
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
        health = session.get(f"{where}{HEALTH}", timeout=PROBE_SECONDS, allow_redirects=False)
        if (method, path) == ("GET", HEALTH) and not pairs:
            return health
        session.headers.update(_credentials(settings, where))
        return session.request(
            method,
            f"{where}{path}",
            params=list(pairs),
            json=body,
            timeout=ANSWER_SECONDS if body is None else WORK_SECONDS,
            allow_redirects=False,
        )
    except requests.RequestException as error:
        raise StoreUnavailable(_sentence(where, error)) from error
    finally:
        session.close()


def _credentials(settings: Settings, where: str) -> dict[str, str]:
    """The header with the token, for those who may see it.

    MEMSVC_TOKEN is meant for the address that is set beside it. The token of this store goes to
    the worker of this store only: whoever else listens on that port is not told.
    """
    worker = read_worker_file(settings.worker_file)
    known = worker is not None and worker.address == where and worker.is_ours
    token = settings.token or (read_token(settings) if known else "")
    return {"Authorization": f"Bearer {token}"} if token else {}


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
    """A problem as its sentence, what else it says of each parameter, and the URL of help; other
    texts as they are.
    """
    text = answer_text(response)
    try:
        problem = json.loads(text)
        more = [
            f"{name}: {message}"
            for name, messages in problem["errors"].items()
            for message in messages
            if message not in problem["error"] and message != MISSING
        ]
        return visible("\n".join([problem["error"], *more, f"help: {problem['help']}"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return visible(text)


def _sentence(where: str, error: requests.RequestException) -> str:
    if isinstance(error, requests.ReadTimeout):
        return (
            f"Something is listening on {where} but does not answer. "
            "Start a worker on a free port: MEMSVC_PORT=0 memsvc start"
        )
    return f"No worker is running at {where} ({type(error).__name__}). Start one: memsvc start"
