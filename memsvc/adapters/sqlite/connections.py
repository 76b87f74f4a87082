"""SQLite connections: one reader per thread, one locked writer, explicit transactions."""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from memsvc.adapters.sqlite.timed import TimedConnection
from memsvc.core.errors import MemsvcError, StoreDamaged, StoreUnavailable
from memsvc.core.limits import deadline

BUSY_SECONDS = 10.0
CACHE_KIB = 8_192  # per connection: four readers and the writer stay far below 120 MB resident


class Connections:
    """All connections to one database file; the writer creates it if it is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._opened: list[TimedConnection] = []
        self._list_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._writer: TimedConnection | None = None

    def reader(self) -> TimedConnection:
        """This thread's read-only connection."""
        connection: TimedConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._open("ro")
            connection.execute("PRAGMA query_only = ON")
            self._local.connection = connection
        return connection

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """This thread's reader, inside one read transaction: all reads see the same state."""
        with store_errors(self.path):
            reader = self.reader()
            if reader.in_transaction:
                yield reader
                return
            with reader.timed(BUSY_SECONDS):
                reader.execute("BEGIN")
                try:
                    yield reader
                finally:
                    reader.commit()  # also past the deadline

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The writer inside BEGIN IMMEDIATE: committed at the end, rolled back on any error."""
        with self._writing(), store_errors(self.path):
            if self._writer is None:
                self._writer = _prepared(self._open("rwc"))
            with self._writer.timed(BUSY_SECONDS), immediate(self._writer) as writer:
                yield writer

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """The turn to write. Raises DeadlineExceeded if it does not come in time."""
        if not self._write_lock.acquire(timeout=deadline.left(-1)):
            raise deadline.exceeded()
        try:
            yield
        finally:
            self._write_lock.release()

    def close(self) -> None:
        """Close every connection of every thread."""
        with self._list_lock:
            for connection in self._opened:
                connection.close()
            self._opened.clear()
            self._writer = None
            self._local = threading.local()

    def _open(self, mode: str) -> TimedConnection:
        with store_errors(self.path):
            connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode={mode}",
                uri=True,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                factory=TimedConnection,
            )
            connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        with self._list_lock:
            self._opened.append(connection)
        return connection


def _prepared(writer: TimedConnection) -> TimedConnection:
    """The writer with its settings, all of them or it is not used."""
    # WAL lets readers continue during a write; FULL keeps an acknowledged write through a power
    # failure; secure_delete overwrites forgotten records on disk.
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA synchronous = FULL")
    writer.execute("PRAGMA secure_delete = ON")
    return writer


@contextlib.contextmanager
def immediate(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """One transaction on a connection in autocommit mode."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()  # nothing to do where SQLite has undone it itself
        raise


@contextlib.contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as MemsvcError, with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain_error(path, error) from error


def explain_error(path: Path, error: sqlite3.Error) -> MemsvcError:
    """The error for the user: what happened and what to do."""
    text = str(error)
    if text == "interrupted":
        return deadline.exceeded()
    if "locked" in text or "busy" in text:
        return StoreUnavailable(
            f"The store {path} is locked by another program; stop that program, or try again."
        )
    if "malformed" in text or "not a database" in text:
        return StoreDamaged(
            f"The store {path} is damaged ({text}); nothing was changed. Move it away and import "
            "again, or restore a backup."
        )
    if "unable to open" in text or "readonly" in text or "disk" in text:
        return StoreUnavailable(
            f"The store {path} cannot be used ({text}); check the folder's permissions and "
            "the free space on its disk."
        )
    return MemsvcError(f"The store {path} failed: {text}")
