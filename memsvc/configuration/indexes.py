"""The vector indexes by name. A new one is a module in `adapters/indexes` and a row here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memsvc.core.ports.vectors import SemanticIndex


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """Where an index keeps vectors of `dimension` numbers: on this machine or on a server.

    `path` is a folder, or a file once it has a suffix; `name` is unique on the server at `url`.
    """

    path: Path
    url: str
    name: str
    dimension: int


# Indexes are imported when they are opened: each needs heavy packages, and most users need one.


def _open_chroma(place: IndexPlace) -> SemanticIndex:
    from memsvc.adapters.indexes.chroma_local import open_chroma

    return open_chroma(place.path, place.dimension)


def _open_chroma_http(place: IndexPlace) -> SemanticIndex:
    from memsvc.adapters.indexes.chroma_http import open_chroma_http

    return open_chroma_http(place.url, place.name, place.dimension)


def _open_sqlite_vec(place: IndexPlace) -> SemanticIndex:
    from memsvc.adapters.indexes.sqlite_vec import open_sqlite_vec

    return open_sqlite_vec(place.path.with_suffix(".db"), place.dimension)


def _open_exact(place: IndexPlace) -> SemanticIndex:
    from memsvc.adapters.indexes.exact import ExactIndex

    return ExactIndex(place.dimension)


INDEXES: Final[Mapping[str, Callable[[IndexPlace], SemanticIndex]]] = {
    "chroma": _open_chroma,
    "chroma-http": _open_chroma_http,
    "sqlite-vec": _open_sqlite_vec,
    "exact": _open_exact,
}
"""The functions that open them; each raises SemanticUnavailable, or ImportError without its
package.
"""
