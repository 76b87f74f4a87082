"""Settings to services: the only place that names adapters."""

import os
from pathlib import Path

from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.application.semantic.switched_off import SwitchedOff
from memsvc.configuration.settings import Settings
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.ports.vectors import Embedder, SemanticIndex, SemanticSearch, dimension_of

# What is heavy is imported where it is used: full text must answer within a second of the start.


def build_store(settings: Settings) -> SqliteStore:
    """The store under MEMSVC_HOME, made or brought up to date first."""
    return open_store(settings.database)


def build_semantic(settings: Settings, store: SqliteStore, *, share: int = 2) -> SemanticSearch:
    """Semantic search as the settings want it; it loads nothing until it is started.

    It embeds with one in `share` of the cores: searches keep the others.
    """
    if settings.semantic == "off":
        return SwitchedOff()
    from memsvc.adapters.sqlite.vectors import SqliteVectors
    from memsvc.application.semantic.worker import Parts, Semantic

    parts = Parts(
        lambda: load_embedder(settings), lambda embedder, name: open_index(settings, embedder, name)
    )
    threads = max(1, (os.cpu_count() or 1) // share)
    return Semantic(store, SqliteVectors(store.connections), parts, threads=threads)


def load_embedder(settings: Settings) -> Embedder:
    """The model, loaded. Raises SemanticUnavailable if it is not as it should be."""
    from memsvc.adapters.onnx_embedder import load_bundled, load_folder

    return load_folder(settings.model) if settings.model else load_bundled()


def open_index(settings: Settings, embedder: Embedder, name: str) -> SemanticIndex:
    """The index for the vectors of this model and of the store of this name.

    Raises SemanticUnavailable.
    """
    dimension = dimension_of(embedder.fingerprint)
    place = settings.index_folder / f"{settings.semantic}-{embedder.fingerprint}"
    try:
        return _open(settings, place, f"memsvc-{name}-{embedder.fingerprint}", dimension)
    except ImportError as error:
        raise SemanticUnavailable(
            f"The semantic index {settings.semantic} cannot be used ({error}); install what it "
            f"needs: pip install 'memsvc[{settings.semantic}]'"
        ) from error


def _open(settings: Settings, place: Path, prefix: str, dimension: int) -> SemanticIndex:
    if settings.semantic == "chroma":
        from memsvc.adapters.indexes.chroma_local import open_chroma

        return open_chroma(place, dimension)
    if settings.semantic == "chroma-http":
        from memsvc.adapters.indexes.chroma_http import open_chroma_http

        return open_chroma_http(settings.chroma_url, prefix, dimension)
    if settings.semantic == "sqlite-vec":
        from memsvc.adapters.indexes.sqlite_vec import open_sqlite_vec

        return open_sqlite_vec(place.with_suffix(".db"), dimension)
    from memsvc.adapters.indexes.exact import ExactIndex

    return ExactIndex(dimension)
