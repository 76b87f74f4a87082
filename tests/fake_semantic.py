"""Semantic search for tests: a model of words alone, so that anyone can tell what is near."""

import random
import re
from collections.abc import Sequence
from functools import cache

import numpy

from memsvc.adapters.indexes.exact import ExactIndex
from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.application.semantic.indexer import Factories
from memsvc.application.semantic.worker import SemanticWorker
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.ports.vectors import Embedder, SemanticIndex, Vector
from memsvc.core.records import Kind

DIMENSION = 64
SAME = {"billed": "charged", "payment": "charge", "customers": "users"}
"""Words that mean the same to this model."""


class WordEmbedder:
    """A text is the sum of its words, each in a direction of its own."""

    def __init__(self, name: str = "words") -> None:
        self.fingerprint = f"{DIMENSION}-{name}"
        self.texts: list[str] = []

    def embed(self, text: str) -> Vector:
        self.texts.append(text)
        words = [SAME.get(word, word) for word in re.findall(r"\w+", text.lower())]
        whole = numpy.sum([_direction(word) for word in words or [""]], axis=0)
        return numpy.asarray(whole / numpy.linalg.norm(whole), dtype=numpy.float32)

    def embed_all(self, texts: Sequence[str]) -> list[Vector]:
        return [self.embed(text) for text in texts]

    def known_share(self, text: str) -> float:
        """All words are known, except those with a digit in them."""
        words = re.findall(r"\w+", text)
        known = [word for word in words if not re.search(r"\d", word)]
        return len("".join(known)) / max(1, len("".join(words)))


@cache
def _direction(word: str) -> Sequence[float]:
    chance = random.Random(word)
    return [chance.gauss(0, 1) for _ in range(DIMENSION)]


class FailingIndex(ExactIndex):
    """An index whose first searches fail."""

    def __init__(self, failures: int) -> None:
        super().__init__(DIMENSION)
        self.failures = failures

    def nearest(
        self, kind: Kind, vector: Vector, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        if self.failures:
            self.failures -= 1
            raise SemanticUnavailable("The index is not well; let it rest.")
        return super().nearest(kind, vector, limit, selection)


def semantic_over(
    store: SqliteStore, embedder: Embedder | None = None, index: SemanticIndex | None = None
) -> SemanticWorker:
    """Semantic search over a store, nothing indexed yet: call `step` until it gives 0."""
    factories = Factories(
        lambda: embedder or WordEmbedder(), lambda *_: index or ExactIndex(DIMENSION)
    )
    return SemanticWorker(store, SqliteVectors(store.connections), factories)


def indexed(store: SqliteStore) -> SemanticWorker:
    """Semantic search that knows all that is in a store."""
    semantic = semantic_over(store)
    settle(semantic)
    return semantic


def settle(semantic: SemanticWorker) -> None:
    """Let semantic search catch up with its store."""
    while semantic.step():
        pass
