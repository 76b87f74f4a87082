"""SQLite connections: one reader per thread, one locked writer, explicit transactions."""

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

from memsvc.adapters.sqlite.open_file import OpenFile, damaged
from memsvc.adapters.sqlite.timed import TimedConnection
from memsvc.core.errors import FulltextBroken, MemsvcError, StoreUnavailable
from memsvc.core.limits import deadline

Key = TypeVar("Key")
Row = TypeVar("Row")
Opened = TypeVar("Opened", bound=sqlite3.Connection)

BUSY_SECONDS = 10.0
SQLITE_VERSION: Final = sqlite3.sqlite_version
KEEPER_MS: Final = 20  # the keeper waits for no one: what it does can be done later
EMPTY_WAL_MS: Final = 1_000  # what was forgotten shall be gone when the answer is given
CACHE_KIB = 8_192  # per connection: four readers and the writer stay far below 120 MB resident


class Connections:
    """All connections to one database file, which exists and is up to date.

    The keeper is open from first to last: it holds the file in its place, asks whether it can be
    written, and at the end leaves everything in the one file.
    """

    def __init__(self, path: Path, patience: float = BUSY_SECONDS) -> None:
        self.path = path
        self.file = OpenFile(path)
        self._local = threading.local()
        self._opened: list[TimedConnection] = []
        self._list_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._writer: TimedConnection | None = None
        self._keeper_lock = threading.RLock()
        self._wal_is_due = False
        self._keeper = self._open_keeper(patience)

    def reader(self) -> TimedConnection:
        """This thread's read-only connection."""
        connection: TimedConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._open("ro")
            connection.execute("PRAGMA query_only = ON")
            self._local.connection = connection
        if not connection.in_transaction:
            self._verify()
        return connection

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """This thread's reader, inside one read transaction: all reads see the same state."""
        with self._errors():
            reader = self.reader()
            if reader.in_transaction:
                yield reader
                return
            with reader.timed(BUSY_SECONDS):
                reader.execute("BEGIN")
                try:
                    yield reader
                finally:
                    reader.rollback()  # also past the deadline, and after a damaged page
        self._empty_wal_if_due()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The writer inside BEGIN IMMEDIATE: committed at the end, rolled back on any error.

        Raises StoreReplaced, also when the file was lost while the transaction ran, and
        StoreDamaged.
        """
        with self._writing(), self._errors():
            self._verify()
            self.file.verify_whole()
            if self._writer is None:
                self._writer = _prepared(self._open("rw"))
            with self._writer.timed(BUSY_SECONDS), immediate(self._writer) as writer:
                yield writer
            self._verify()  # what was written into a deleted file must not be acknowledged
        self._empty_wal_if_due()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """The turn to write. Raises DeadlineExceeded if it does not come in time."""
        if not self._write_lock.acquire(timeout=deadline.left(-1)):
            raise deadline.exceeded()
        try:
            yield
        finally:
            self._write_lock.release()

    def check(self) -> None:
        """Raise unless a row can be read and could be written; a writer at work is no fault."""
        self._verify()
        self.file.verify_whole()
        self.file.verify_space()
        with self._errors():
            self.reader().execute("SELECT number FROM generation").fetchone()
            if self._keeper_lock.acquire(blocking=False):
                try:
                    _require_writable(self._keeper)
                finally:
                    self._keeper_lock.release()

    def empty_wal(self, patience: int = EMPTY_WAL_MS) -> bool:
        """Move all of the log into the database, so that no forgotten text stays in it.

        It waits so many ms for reads that still need the log; if they do not end it is done after
        one of the next reads or writes, and the answer is False.
        """
        reader = getattr(self._local, "connection", None)
        waits_for_itself = reader is not None and reader.in_transaction
        with self._errors(), self._waiting_keeper(0 if waits_for_itself else patience) as keeper:
            (blocked, *_) = keeper.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._wal_is_due = bool(blocked)
            return not blocked

    def compact(self) -> None:
        """Write the whole file anew. Where SQLite moved a text to another page, the old page may
        keep a copy of it, which `secure_delete` does not reach.
        """
        with self._writing(), self._errors():
            self._verify()
            self.file.verify_whole()
            with self._waiting_keeper(round(1000 * BUSY_SECONDS)) as keeper:
                keeper.execute("VACUUM")

    @contextlib.contextmanager
    def _waiting_keeper(self, patience: int) -> Iterator[sqlite3.Connection]:
        """The keeper, which within it waits so many ms for others."""
        with self._keeper_lock:
            self._keeper.execute(f"PRAGMA busy_timeout = {patience}")
            try:
                yield self._keeper
            finally:
                self._keeper.execute(f"PRAGMA busy_timeout = {KEEPER_MS}")

    def _empty_wal_if_due(self) -> None:
        if self._wal_is_due:
            with contextlib.suppress(MemsvcError):  # what was just done is done
                self.empty_wal(0)

    def interrupt(self) -> None:
        """Break off all statements."""
        with self._list_lock:
            for connection in self._opened:
                connection.interrupt()

    def close(self) -> None:
        """Close every connection of every thread, the keeper last: it leaves all in one file."""
        with self._list_lock, self._keeper_lock:
            for connection in self._opened:
                connection.close()
            if not self.file.moved():
                with contextlib.suppress(sqlite3.Error):
                    self._keeper.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._keeper.close()
            self._opened.clear()
            self._writer = None
            self._local = threading.local()

    def _open_keeper(self, patience: float) -> sqlite3.Connection:
        with store_errors(self.path):
            keeper = _connect(self.path, "rw", patience, sqlite3.Connection)
            try:
                _prepared(keeper)
                keeper.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the log
                keeper.execute(f"PRAGMA busy_timeout = {KEEPER_MS}")
            except BaseException:
                keeper.close()
                raise
        self.file.remember()
        return keeper

    def _verify(self) -> None:
        try:
            self.file.verify()
        except StoreUnavailable:
            self._rescue()
            raise

    def _rescue(self) -> None:
        """Save what only a lost log holds, as long as the keeper has that open."""
        log = self.path.with_name(f"{self.path.name}-wal")
        if self.file.moved() == [log] and self._keeper_lock.acquire(blocking=False):
            try:
                with contextlib.suppress(sqlite3.Error, OSError):
                    self._keeper.execute("PRAGMA wal_checkpoint(PASSIVE)")
                    if log.exists():  # applied at the next start, another log would spoil the file
                        log.replace(log.with_name(f"{log.name}.foreign"))
            finally:
                self._keeper_lock.release()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise SQLite's errors as MemsvcError, and remember what they say about the file."""
        try:
            with store_errors(self.path):
                yield
        except MemsvcError as error:
            cause = error.__cause__
            if isinstance(cause, sqlite3.Error):
                self._verify()  # a lost file explains every other error
                if is_damage(cause):
                    self.file.note_damage(str(cause))
                if is_fulltext(cause):
                    self._note_broken(str(cause))
            raise

    def _note_broken(self, reason: str) -> None:
        """Let the next start look at the full-text indexes."""
        with self._keeper_lock, contextlib.suppress(sqlite3.Error):
            self._keeper.execute("INSERT OR IGNORE INTO broken VALUES ('fulltext', ?)", (reason,))

    def _open(self, mode: str) -> TimedConnection:
        self._verify()
        with store_errors(self.path):
            connection = _connect(self.path, mode, BUSY_SECONDS, TimedConnection)
        with self._list_lock:
            self._opened.append(connection)
        return connection


def _connect(path: Path, mode: str, patience: float, factory: type[Opened]) -> Opened:
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,
        factory=factory,
    )
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    return connection


def _prepared(writer: Opened) -> Opened:
    """A connection that may write, with its settings: all of them, or it is not used."""
    # WAL lets readers continue during a write; FULL keeps an acknowledged write through a power
    # failure; secure_delete overwrites forgotten records on disk.
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA synchronous = FULL")
    writer.execute("PRAGMA secure_delete = ON")
    return writer


def _require_writable(keeper: sqlite3.Connection) -> None:
    try:
        keeper.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if not is_locked(error):  # another who writes shows that it can be done
            raise
    else:
        keeper.execute("ROLLBACK")


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
    """The error for the user: what happened and what to do. It names no folder."""
    text, name = str(error), path.name
    if text == "interrupted":
        return deadline.exceeded()
    if is_locked(error):
        return StoreUnavailable(
            f"{name} is locked by another program; stop that program, or try again."
        )
    if is_damage(error):
        return damaged(path, text)
    if is_fulltext(error):
        return FulltextBroken(
            f"The full-text index of {name} is broken ({text}); the records are whole, and lists "
            "still work. It is rebuilt at the next start: memsvc stop; memsvc start"
        )
    if _primary(error) in _UNUSABLE:
        return StoreUnavailable(
            f"{name} cannot be used ({text}); check the permissions of its folder and the free "
            "space on its disk: memsvc status shows where it is."
        )
    return MemsvcError(f"{name} failed: {text}")


_UNUSABLE: Final = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_PERM,
    }
)


def is_locked(error: BaseException | None) -> bool:
    """Whether another program's lock is in the way."""
    return _primary(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_damage(error: BaseException | None) -> bool:
    """Whether pages of the file are damaged."""
    code = getattr(error, "sqlite_errorcode", 0)
    damaged_pages = code != sqlite3.SQLITE_CORRUPT_VTAB and code & 0xFF == sqlite3.SQLITE_CORRUPT
    return damaged_pages or code == sqlite3.SQLITE_NOTADB


def read_readable(
    read: Callable[[Sequence[Key]], list[Row]], ids: Sequence[Key], found: Callable[[str], None]
) -> list[Row]:
    """The rows of these ids; where pages are damaged, those of the ids that can be read.

    `found` is told about the damage. Raises sqlite3.DatabaseError if a
    single one cannot be read.
    """
    try:
        return read(ids)
    except sqlite3.DatabaseError as error:
        if not is_damage(error) or len(ids) < 2:
            raise
        found(str(error))
    rows: list[Row] = []
    for id in ids:
        with contextlib.suppress(sqlite3.DatabaseError):
            rows += read([id])
    return rows


def is_fulltext(error: BaseException | None) -> bool:
    """Whether a full-text index is missing or does not hold together."""
    code, text = getattr(error, "sqlite_errorcode", 0), str(error)
    named = any(each in text for each in ("_fts", "_vocab", "SQL logic error"))  # FTS5 says no more
    return code == sqlite3.SQLITE_CORRUPT_VTAB or (code == sqlite3.SQLITE_ERROR and named)


def _primary(error: BaseException | None) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
