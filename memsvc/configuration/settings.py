"""The table of settings. Environment variables and their documentation come from it."""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from memsvc.configuration.indexes import INDEXES
from memsvc.core.errors import BadRequest

SEMANTIC = (*INDEXES, "off")
"""The values of MEMSVC_SEMANTIC: an index, or off for full-text search only."""

AUTH = ("auto", "always")
"""The values of MEMSVC_AUTH: auto asks for the token unless the worker listens on loopback."""

WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that stand for all of this machine, each with one that reaches it from here."""

_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,200}")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, read from its environment variable."""

    name: str
    default: str
    description: str

    @property
    def variable(self) -> str:
        return f"MEMSVC_{self.name.upper()}"


SETTINGS = (
    Setting("home", "", "folder that holds all state; default: the system's folder for user data"),
    Setting("host", "127.0.0.1", "address that the worker listens on"),
    Setting("port", "37777", "port that the worker listens on; 0 picks a free one"),
    Setting("allowed_hosts", "", "more names that the worker answers to, separated by commas"),
    Setting("auth", "auto", "who needs the token: auto, all unless host is loopback; or always"),
    Setting("token", "", "token of the worker; default: the generated one (memsvc token)"),
    Setting("threads", "4", "requests handled at the same time (1-64)"),
    Setting("deadline", "5", "seconds that any answer may take, waiting included (1-600)"),
    Setting("semantic", "chroma", f"semantic index: {', '.join(INDEXES)} or off"),
    Setting("chroma_url", "http://127.0.0.1:8000", "address of the Chroma server, for chroma-http"),
    Setting("backups", "7", "days that daily backups are kept (0-3650); 0 makes none"),
    Setting("model", "", "folder with model.onnx and tokenizer.json; default: the bundled model"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force."""

    home: Path
    host: str
    port: int
    allowed_hosts: tuple[str, ...]
    auth: str
    token: str
    threads: int
    deadline: int
    semantic: str
    chroma_url: str
    model: Path | None
    backups: int

    @property
    def database(self) -> Path:
        return self.home / "memsvc.db"

    @property
    def worker_file(self) -> Path:
        """The file with the address of the running worker, so that clients find it."""
        return self.home / "worker.json"

    @property
    def token_file(self) -> Path:
        """The file with the generated token."""
        return self.home / "token"

    @property
    def needs_token(self) -> bool:
        """Whether clients must send the token."""
        return self.auth == "always" or not is_loopback(self.host)

    @property
    def index_folder(self) -> Path:
        """The folder of a local semantic index; if it is deleted, the index is rebuilt."""
        return self.home / "index"


def worker_url(host: str, port: int) -> str:
    """The URL that reaches a worker from this machine, with an IPv6 address in brackets."""
    host = WILDCARDS.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can connect to this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_token(text: str) -> bool:
    """Whether a text can be sent as a bearer token and is too long to be guessed."""
    return bool(_TOKEN.fullmatch(text))


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings from the environment. Raises BadRequest; it names the bad variable."""
    given = {s.name: environment.get(s.variable, "").strip() or s.default for s in SETTINGS}
    return Settings(
        home=Path(given["home"] or platformdirs.user_data_dir("memsvc")).expanduser().absolute(),
        host=given["host"],
        port=_whole_number("port", given["port"], 0, 65535),
        allowed_hosts=_hosts("allowed_hosts", given["allowed_hosts"]),
        auth=_one_of("auth", given["auth"], AUTH),
        token=_token(given["token"]),
        threads=_whole_number("threads", given["threads"], 1, 64),
        deadline=_whole_number("deadline", given["deadline"], 1, 600),
        semantic=_one_of("semantic", given["semantic"], SEMANTIC),
        chroma_url=given["chroma_url"],
        backups=_whole_number("backups", given["backups"], 0, 3650),
        model=Path(given["model"]).expanduser().absolute() if given["model"] else None,
    )


def _one_of(name: str, text: str, allowed: tuple[str, ...]) -> str:
    if text in allowed:
        return text
    raise BadRequest(f"MEMSVC_{name.upper()} is {text!r}; allowed: {', '.join(allowed)}")


def _whole_number(name: str, text: str, low: int, high: int) -> int:
    if text.isascii() and text.isdigit() and low <= int(text) <= high:
        return int(text)
    raise BadRequest(f"MEMSVC_{name.upper()} is {text!r}; allowed: {low} to {high}")


def _hosts(name: str, text: str) -> tuple[str, ...]:
    """Names and IP addresses in normal form, without ports."""
    return tuple(_host(name, part.strip()) for part in text.split(",") if part.strip())


def _host(name: str, text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.removeprefix("[").removesuffix("]")))
    except ValueError:
        if _HOST.fullmatch(text):
            return text.lower()
    raise BadRequest(
        f"MEMSVC_{name.upper()} has {text!r}; allowed: names and IP addresses, without a port, "
        "separated by commas"
    )


def _token(text: str) -> str:
    if not text or is_token(text):
        return text
    raise BadRequest(
        f"MEMSVC_TOKEN has {len(text)} characters; allowed: 16 to 200 of A-Z a-z 0-9 . _ ~ + / = -"
    )
