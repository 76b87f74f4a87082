"""The token that opens the worker: generated once, kept in MEMSVC_HOME."""

import secrets

from memsvc.configuration.home import read_private, write_private
from memsvc.configuration.settings import Settings, is_token
from memsvc.core.errors import BadRequest

TOKEN_BYTES = 32


def read_token(settings: Settings) -> str:
    """The token in force: that of MEMSVC_TOKEN, else of the file; empty if there is none."""
    kept = settings.token or read_private(settings.token_file).strip()
    return kept if is_token(kept) else ""


def ensure_token(settings: Settings) -> str:
    """The token in force, generated if there is none. Raises StoreUnavailable."""
    return read_token(settings) or _generate(settings)


def renew_token(settings: Settings) -> str:
    """A new token; the old one opens nothing from now on.

    Raises BadRequest if the token is a setting, StoreUnavailable if it cannot be written.
    """
    if settings.token:
        raise BadRequest("The token is that of MEMSVC_TOKEN; change or unset that variable.")
    return _generate(settings)


def _generate(settings: Settings) -> str:
    token = secrets.token_urlsafe(TOKEN_BYTES)
    write_private(settings.token_file, f"{token}\n")
    return token
