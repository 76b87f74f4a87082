"""Vectors: where they are kept, what makes them, and what finds the nearest."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from memsvc.core.filters import Filter
from memsvc.core.records import Kind, Record, Ref


@dataclass(frozen=True, slots=True)
class Embedded:
    """A record as a semantic index knows it: its vectors, of shape (n, dimension) and unit length,
    and what it can be selected by. `groups` holds (field, folded values) of project, type, concept.
    """

    ref: Ref
    created_at_epoch: int
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    vectors: Any


@dataclass(frozen=True, slots=True)
class Pending:
    """A record that waits for its vectors; `sequence` changes whenever its texts do. If `has_lead`,
    the vector of its lead stands for it meanwhile.
    """

    sequence: int
    ref: Ref
    has_lead: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What an index has to follow: the record as it is now, or None if it is to be taken out."""

    sequence: int
    ref: Ref
    embedded: Embedded | None


def dimension_of(fingerprint: str) -> int:
    """How many numbers a vector has: every fingerprint begins with it, as in `384-c6628b6c`."""
    return int(fingerprint.split("-")[0])


if TYPE_CHECKING:  # numpy is imported by those who calculate, not by those who only speak of it
    import numpy

    Vector = numpy.typing.NDArray[numpy.float32]
else:
    Vector = object


class VectorStore(Protocol):
    """Where vectors are kept for good, and what is still to be done about them.

    It follows the store by itself: a record that is written, or whose texts change, waits for its
    vectors; one that is forgotten loses them. `tests/contracts` holds every adapter to this.
    """

    def store_name(self) -> str:
        """What tells this store from others that share a server; it never changes."""

    def rebuilds(self) -> int:
        """How often a rebuild of the index was asked for; 0 in a new store."""

    def ask_rebuild(self) -> None:
        """Ask whoever owns the index to rebuild it from the vectors."""

    def queue_others(self, fingerprint: str) -> None:
        """Let every record wait that has no vectors of this fingerprint; one that waits already
        keeps its place.
        """

    def pending(self, limit: int) -> list[Pending]:
        """The first records that wait for their vectors: those without a lead first, then newest
        first, ties by id and kind; each stands where it was when it began to wait.
        """

    def count_pending(self) -> int:
        """How many records wait for their vectors."""

    def count_unknown(self) -> int:
        """How many of them have no lead either."""

    def keep_leads(self, done: Sequence[tuple[Pending, Vector]], fingerprint: str) -> None:
        """Store the vector of each lead in place of any others, all or none; the records go on
        waiting, behind those without a lead. Otherwise like `keep_vectors`.
        """

    def keep_vectors(self, done: Sequence[tuple[Pending, Vector]], fingerprint: str) -> None:
        """Store vectors in place of any others, all or none, and let the records wait no longer.

        Those of a record that changed or was forgotten since they were begun are dropped. Half
        precision is enough.
        """

    def vectors(self, kind: Kind, ids: Sequence[int], fingerprint: str) -> dict[int, Vector]:
        """The vectors of records with one fingerprint, their leads too, float32 of shape
        (n, dimension); records without any are left out.
        """

    def embedded_among(self, kind: Kind, ids: Sequence[int], fingerprint: str) -> set[int]:
        """Those of these records for which `vectors` has some."""

    def changes(self, position: int, limit: int, fingerprint: str) -> list[Change]:
        """The next changes after a position that an index has to follow, by rising sequence.

        A record whose vectors were kept, that was updated or that was forgotten has changed; only
        its last change is listed. Without vectors of this fingerprint it is to be taken out.
        """

    def count_changes(self, position: int) -> int:
        """How many changes come after a position."""

    def records(self, refs: Iterable[Ref]) -> dict[Ref, Record]:
        """The records that exist among these refs."""


class Embedder(Protocol):
    """What turns texts into vectors of unit length."""

    @property
    def fingerprint(self) -> str:
        """Names all that vectors depend on: dimension, model, tokens, texts."""

    def embed(self, text: str) -> Vector:
        """The vector of a text, of shape (dimension,). Any text has one."""

    def embed_all(self, texts: Sequence[str]) -> Sequence[Vector]:
        """The vectors of some texts of similar length, at once: faster than one by one."""

    def known_share(self, text: str) -> float:
        """The share of its letters that are in words the model knows whole; a text of other words
        has a vector that says little.
        """


class SemanticIndex(Protocol):
    """Finds the nearest vectors. A cache: all that it holds can be rebuilt from the store.

    A record may have several vectors; the nearest of them stands for it. Methods may be called from
    any thread. They raise SemanticUnavailable when the index cannot do its work.
    """

    def upsert(self, records: Sequence[Embedded]) -> None:
        """Put records in, each in place of all that the index held of it."""

    def remove(self, refs: Sequence[Ref]) -> None:
        """Take records out; those that are not there are passed over."""

    def nearest(
        self, kind: Kind, vector: Vector, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        """The `limit` nearest records of a kind that a filter selects: id and cosine (-1 to 1),
        nearest first, each once. The filter is applied before the nearest are taken; it holds no
        group of files.
        """

    def nearest_each(
        self, kind: Kind, vectors: Sequence[Vector], limit: int, selection: Filter
    ) -> list[list[tuple[int, float]]]:
        """What `nearest` gives for each of these vectors, in their order; one or more."""

    def count(self) -> int:
        """How many vectors there are."""

    def position(self) -> int:
        """The last change of the store that the index has followed; 0 in an empty index."""

    def advance(self, position: int) -> None:
        """Note, for good, that every change up to this one is in the index."""

    def clear(self) -> None:
        """Throw everything away, the position too; also when what is there cannot be read."""

    def close(self) -> None:
        """Let go of files, locks and threads."""


class SemanticSearch(Protocol):
    """What finds records by their meaning, as far as it is there."""

    def start(self) -> None:
        """Load and index in the background until `stop`."""

    def stop(self) -> None:
        """End the background work and let go of the index."""

    def step(self) -> int:
        """Do some of what is to be done, in this thread; how much it was, 0 when all is done.

        Raises MemsvcError when it cannot be done.
        """

    def ask_rebuild(self) -> None:
        """Ask whoever owns the index to make it anew from the vectors in the store."""

    def nearest(
        self, kind: Kind, text: str, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        """The records of a kind nearest to a text within a filter: id and cosine, nearest first.

        Raises SemanticUnavailable, saying why.
        """

    def nearest_each(
        self, kind: Kind, texts: Sequence[str], limit: int, selection: Filter
    ) -> list[list[tuple[int, float]]]:
        """What `nearest` gives for each of these texts, in their order; one or more."""

    def prepare(self, text: str) -> None:
        """Begin with a text that `nearest` or `compare` will be asked about; never fails."""

    def compare(self, kind: Kind, text: str, ids: Sequence[int]) -> list[tuple[int, float]]:
        """A few records by how near they are to a text: id and cosine, nearest first.

        Raises SemanticUnavailable.
        """

    def floor(self, text: str) -> float:
        """The lowest cosine at which a record without any word of a text counts as similar."""

    def unknown_among(self, kind: Kind, ids: Sequence[int]) -> set[int]:
        """Those of these records whose meaning is not known yet."""

    def missing(self) -> str:
        """What is not known to it yet, in a sentence; empty if nothing."""

    def report(self) -> dict[str, Any]:
        """Whether it works (`ok`), `detail` why not or what is still to be done, how many records
        are `waiting`, and how many `rebuilds` it has seen.
        """

    def check(self) -> None:
        """Raise SemanticUnavailable, saying why, unless the index finds a record by the vector that
        the store has of it; one that the index may not know yet is not asked for.
        """
