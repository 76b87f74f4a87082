"""Builds the services that the settings ask for. Only this and the two tables beside it name
adapters.
"""

import os
import threading
from collections.abc import Callable
from typing import Final

from memsvc.adapters.sqlite.store import SqliteStore, await_store, open_store
from memsvc.configuration.home import open_home
from memsvc.configuration.indexes import INDEXES, IndexPlace
from memsvc.configuration.settings import Settings
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.ports.masking import Mask
from memsvc.core.ports.store import Store
from memsvc.core.ports.vectors import (
    Embedder,
    SemanticIndex,
    SemanticSearch,
    VectorStore,
    dimension_of,
)

LOAD_MASK_AFTER: Final = 1.0
"""Seconds after the start of a worker; the first answers go first."""

# Heavy packages are imported where they are used: full text must answer within a second of start.


def build_store(settings: Settings) -> Store:
    """The store under MEMSVC_HOME, created or migrated first; only its owner may read it.

    Raises StoreUnavailable, StoreDamaged or StoreTooNew.
    """
    open_home(settings.home)
    return open_store(settings.database)


def await_unlocked_store(settings: Settings, waiting: Callable[[], None]) -> Store:
    """The same for a worker, which waits while another program has the store locked; `waiting` is
    called about every second of it.
    """
    open_home(settings.home)
    return await_store(settings.database, waiting)


def build_mask() -> Mask:
    """What finds and hides secrets; its rules are loaded when the first text is masked."""
    from memsvc.adapters.secrets import mask_secrets

    return mask_secrets


def load_mask_soon() -> None:
    """Load the rules of the mask in the background, a moment after a worker has started."""
    timer = threading.Timer(LOAD_MASK_AFTER, build_mask(), ["any text that is long enough"])
    timer.daemon = True
    timer.start()


def build_vectors(store: Store) -> VectorStore:
    """The vectors of a store that `build_store` made; they are in the same file."""
    from memsvc.adapters.sqlite.vectors import SqliteVectors

    assert isinstance(store, SqliteStore)
    return SqliteVectors(store.connections)


def build_semantic(settings: Settings, store: Store, *, share: int = 2) -> SemanticSearch | None:
    """Semantic search as configured, None if it is off; it loads nothing until it is started.

    Embedding uses one in `share` cores and leaves the others to searches; two at least while nobody
    searches.
    """
    if settings.semantic == "off":
        return None
    from memsvc.application.semantic.indexer import Factories
    from memsvc.application.semantic.worker import SemanticWorker

    factories = Factories(
        lambda: load_embedder(settings), lambda embedder, name: open_index(settings, embedder, name)
    )
    cores = os.cpu_count() or 1
    threads = max(1, cores // share)
    quiet = max(threads, min(2, cores))
    return SemanticWorker(
        store, build_vectors(store), factories, threads=threads, quiet_threads=quiet
    )


def load_embedder(settings: Settings) -> Embedder:
    """The loaded model. Raises SemanticUnavailable if it cannot be loaded."""
    from memsvc.adapters.onnx_embedder import load_bundled, load_folder

    return load_folder(settings.model) if settings.model else load_bundled()


def open_index(settings: Settings, embedder: Embedder, name: str) -> SemanticIndex:
    """The index of this model's vectors for the store with this name.

    Raises SemanticUnavailable.
    """
    fingerprint = embedder.fingerprint
    place = IndexPlace(
        path=settings.index_folder / f"{settings.semantic}-{fingerprint}",
        url=settings.chroma_url,
        name=f"memsvc-{name}-{fingerprint}",
        dimension=dimension_of(fingerprint),
    )
    try:
        return INDEXES[settings.semantic](place)
    except ImportError as error:
        raise SemanticUnavailable(
            f"The semantic index {settings.semantic} cannot be used ({error}); reinstall memsvc: "
            "pip install --force-reinstall memsvc"
        ) from error
