"""The table of settings. Environment variables and their documentation come from it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from memsvc.configuration.indexes import INDEXES
from memsvc.core.errors import BadRequest

SEMANTIC = (*INDEXES, "off")
"""The values of MEMSVC_SEMANTIC: an index, or off for full-text search only."""


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
    Setting("threads", "4", "requests handled at the same time (1-64)"),
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
    threads: int
    semantic: str
    chroma_url: str
    model: Path | None
    backups: int = 7

    @property
    def database(self) -> Path:
        return self.home / "memsvc.db"

    @property
    def worker_file(self) -> Path:
        """The file with the address of the running worker, so that clients find it."""
        return self.home / "worker.json"

    @property
    def index_folder(self) -> Path:
        """The folder of a local semantic index; if it is deleted, the index is rebuilt."""
        return self.home / "index"


def worker_url(host: str, port: int) -> str:
    """The URL of a worker, with an IPv6 address in brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings from the environment. Raises BadRequest; it names the bad variable."""
    given = {s.name: environment.get(s.variable, "").strip() or s.default for s in SETTINGS}
    return Settings(
        home=Path(given["home"] or platformdirs.user_data_dir("memsvc")).expanduser().absolute(),
        host=given["host"],
        port=_whole_number("port", given["port"], 0, 65535),
        threads=_whole_number("threads", given["threads"], 1, 64),
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
