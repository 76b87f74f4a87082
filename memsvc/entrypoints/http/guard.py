"""Whom the worker answers: rules about what a request says of where it comes from.

A web page can send requests to this machine, and a name of its own can be made to lead here. Its
browser then tells the truth in Host, Origin and Sec-Fetch-Site, which pages cannot change.
"""

import hmac
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from memsvc.configuration.settings import WILDCARDS, Settings
from memsvc.core.errors import Forbidden, Unauthorized
from memsvc.entrypoints.token_file import read_token

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})

HEALTH: Final = "/api/health"
"""The route that needs no token: it tells nothing but that a worker is running."""

READS: Final = ("GET", "HEAD", "OPTIONS")

DEFAULT_PORTS: Final = {"http": 80, "https": 443}

MAX_SHOWN: Final = 80
"""Maximum characters of a refused header that the answer repeats."""

_AUTHORITY: Final = r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::(?P<port>[1-9][0-9]{0,4}))?"
_HOST: Final = re.compile(_AUTHORITY, re.IGNORECASE | re.ASCII)
_ORIGIN: Final = re.compile(rf"(?P<scheme>https?)://{_AUTHORITY}", re.IGNORECASE | re.ASCII)
_TARGET: Final = re.compile(rf"{_ORIGIN.pattern}(?:[/?].*)?", _ORIGIN.flags | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Door:
    """The names that a worker answers to, and the token that it asks for."""

    names: frozenset[str] = LOOPBACK
    needs_token: bool = False
    token: Callable[[], str] = str
    """Gives the token in force, empty if there is none."""


LOCAL: Final = Door()
"""The door of a worker that this machine alone can reach."""


class Origin(NamedTuple):
    """A site, as browsers tell sites apart."""

    scheme: str
    name: str
    port: int


def door_of(settings: Settings) -> Door:
    """The door that these settings describe; a new token counts at once."""
    own = {_plain_name(settings.host)} - WILDCARDS.keys()
    names = LOOPBACK | own | set(settings.allowed_hosts)
    return Door(names, settings.needs_token, lambda: read_token(settings))


def check_source(door: Door, method: str, target: str, headers: Mapping[str, str]) -> None:
    """Raise Forbidden for a request under a foreign name, or from another site."""
    host = headers.get("Host", "")
    own = _parsed(_HOST, host)
    if own is None or own.name not in door.names:
        raise _foreign("Host", host)
    if not target.startswith("/") and target != "*" and not _is_known(door, _TARGET, target):
        raise _foreign("Request target", target)
    _check_site(method, headers.get("Sec-Fetch-Site"))
    origin = headers.get("Origin")
    if origin is not None and not _may_ask(door, method, origin, own):
        raise _foreign("Origin", origin)


def _check_site(method: str, site: str | None) -> None:
    allowed = {"same-origin", "none"} | ({"same-site"} if method in READS else set())
    if site is not None and site.strip().lower() not in allowed:
        raise Forbidden(
            f"Sec-Fetch-Site {site[:MAX_SHOWN]!r} is not allowed: another web page sent this "
            "request. Type the address into the browser instead of following a link."
        )


def _may_ask(door: Door, method: str, text: str, own: Origin) -> bool:
    """Whether a page of this origin may; only the worker's own pages may write."""
    if method in READS:
        return _is_known(door, _ORIGIN, text)
    return _parsed(_ORIGIN, text) == own


def _is_known(door: Door, pattern: re.Pattern[str], text: str) -> bool:
    site = _parsed(pattern, text)
    return site is not None and site.name in door.names


def _parsed(pattern: re.Pattern[str], text: str) -> Origin | None:
    """The site in a text of this form, in normal form; None for anything unusual."""
    found = pattern.fullmatch(text)
    if found is None:
        return None
    parts = found.groupdict()
    scheme = (parts.get("scheme") or "http").lower()
    port = int(parts["port"] or DEFAULT_PORTS[scheme])
    return Origin(scheme, _plain_name(parts["name"]), port) if port < 65536 else None


def _plain_name(name: str) -> str:
    bare = name.removeprefix("[").removesuffix("]")
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return name.lower()
    return name if name != bare and address.version == 4 else str(address)


def _foreign(what: str, given: str) -> Forbidden:
    return Forbidden(
        f"{what} {given[:MAX_SHOWN]!r} is not allowed; use 127.0.0.1 or localhost, or another name "
        "of the worker that MEMSVC_ALLOWED_HOSTS lists."
    )


def check_token(door: Door, path: str, authorization: str | None) -> None:
    """Raise Unauthorized without the token where it is needed, and for a wrong one everywhere."""
    if authorization is None:
        if door.needs_token and path.rstrip("/") != HEALTH:
            raise Unauthorized(
                "This worker answers only with its token, in a header: Authorization: Bearer "
                "TOKEN. On its machine, `memsvc token` prints it; elsewhere, memsvc sends the one "
                "in MEMSVC_TOKEN."
            )
    elif not _is_right(authorization, door.token()):
        raise Unauthorized(
            "Authorization is not Bearer with the token of this worker. On its machine, `memsvc "
            "token` prints it."
        )


def _is_right(authorization: str, token: str) -> bool:
    scheme, _, given = authorization.partition(" ")
    equal = hmac.compare_digest(given.strip().encode(), token.encode())
    return equal and bool(token) and scheme.lower() == "bearer"
