"""What is wrong with a store, found by reading alone, and what mends it."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memsvc.adapters.sqlite.connections import BUSY_SECONDS, immediate, store_errors
from memsvc.adapters.sqlite.integrity import fulltext_problems, problems, rebuild_fulltext
from memsvc.adapters.sqlite.labels import LabelIds
from memsvc.adapters.sqlite.records import label, read_records
from memsvc.adapters.sqlite.schema import migrations
from memsvc.core.errors import MemsvcError, StoreDamaged, StoreUnavailable
from memsvc.core.ports.upkeep import SALVAGE, Finding
from memsvc.core.records import SHAPES, Kind

FULLTEXT: Final = "full text"
ROWS: Final = "rows"

STOP_AND_FIX: Final = "memsvc stop; memsvc doctor --fix; memsvc start"
FIX: Final = "memsvc doctor --fix"

MAX_PROBLEMS: Final = 3
"""Problems that a finding quotes."""


def check_store(store: Path, *, thorough: bool) -> list[Finding]:
    """Look at a store's file, full text, and everything that belongs to records.

    It reads one state of the store and keeps nobody from writing, unless it is `thorough`: then
    full text is compared with every row, which nobody may write meanwhile.
    """
    try:
        with store_errors(store), contextlib.closing(_open(store)) as connection:
            found = [_check_schema(connection)]
            connection.execute("BEGIN")
            found.append(_check_pages(connection))
            if all(each.ok for each in found):
                found += [_check_indexed(connection, kind) for kind in Kind]
                found += _check_rows(connection)
            connection.execute("COMMIT")
            if thorough and all(each.ok for each in found):
                found += [_check_fulltext(connection, kind) for kind in Kind]
            return found
    except StoreDamaged as error:
        return [Finding("file", False, error.detail, STOP_AND_FIX, SALVAGE)]
    except StoreUnavailable as error:  # locked, or newer than we are: no fault of the file
        return [Finding("file", False, error.detail, "memsvc status")]
    except MemsvcError as error:
        return [Finding("file", False, error.detail, STOP_AND_FIX, SALVAGE)]


def _open(store: Path) -> sqlite3.Connection:
    uri = f"{store.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def _check_schema(connection: sqlite3.Connection) -> Finding:
    migrations.check_owner(connection)
    if steps := migrations.pending(connection):
        detail = f"the schema lacks {len(steps)} of {len(migrations.STEPS)} steps"
        return Finding("schema", False, detail, "memsvc start")
    return Finding("schema", True, f"version {len(migrations.STEPS)}, the newest")


def _check_pages(connection: sqlite3.Connection) -> Finding:
    found = [problem for problem, _ in zip(problems(connection), range(MAX_PROBLEMS), strict=False)]
    if found:
        quoted = " ".join("; ".join(found).split())[:300]
        return Finding("file", False, f"pages are damaged: {quoted}", STOP_AND_FIX, SALVAGE)
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    return Finding("file", True, f"all {pages:,} pages are whole")


def _check_indexed(connection: sqlite3.Connection, kind: Kind) -> Finding:
    """Whether full text knows the rows of a kind and no others."""
    table = SHAPES[kind].table
    part = f"full text of {table}"
    try:
        missing = _count(
            connection, f"{table} WHERE id NOT IN (SELECT id FROM {table}_fts_docsize)"
        )
        strays = _count(connection, f"{table}_fts_docsize WHERE id NOT IN (SELECT id FROM {table})")
    except sqlite3.DatabaseError as error:
        return Finding(part, False, str(error), FIX, FULLTEXT)
    if missing or strays:
        detail = f"{missing:,} records are not in it, and {strays:,} in it do not exist"
        return Finding(part, False, detail, FIX, FULLTEXT)
    return Finding(part, True, f"{_count(connection, table):,} records")


def _check_fulltext(connection: sqlite3.Connection, kind: Kind) -> Finding:
    part = f"words of {SHAPES[kind].table}"
    if problem := fulltext_problems(connection, kind):
        return Finding(part, False, problem, FIX, FULLTEXT)
    return Finding(part, True, "full text says what the records say")


def _strays() -> Iterator[tuple[str, str, str]]:
    """What must have no rows: a part, what its rows are, and SQL for them, from the table on."""
    for kind, shape in SHAPES.items():
        table, of = shape.table, f"kind = '{kind}'"
        rows = f"(SELECT id FROM {table})"
        yield (
            f"vectors of {table}",
            "vectors of records that do not exist",
            f"{table}_vectors WHERE id NOT IN {rows}",
        )
        yield (
            f"vectors of {table}",
            "records without vectors that nothing waits for",
            f"""{table} WHERE id NOT IN (SELECT id FROM {table}_vectors)
                AND id NOT IN (SELECT record FROM pending WHERE {of})""",
        )
        yield (
            f"vectors of {table}",
            "records that wait for vectors and do not exist",
            f"pending WHERE {of} AND record NOT IN {rows}",
        )
        yield (
            f"costs of {table}",
            "costs of records that do not exist",
            f"costs WHERE {of} AND record NOT IN {rows}",
        )
        yield (
            f"costs of {table}",
            "records without costs",
            f"{table} WHERE id NOT IN (SELECT record FROM costs WHERE {of})",
        )
        labels = f"(SELECT id FROM labels WHERE {of})"
        yield (
            f"labels of {table}",
            "labels of records that do not exist",
            f"labelled WHERE label IN {labels} AND record NOT IN {rows}",
        )
        yield (
            f"labels of {table}",
            "records without labels, which no filter finds",
            f"""{table} WHERE id NOT IN (SELECT record FROM labelled WHERE label IN
                (SELECT id FROM labels WHERE {of} AND field = 'work'))""",
        )
    for table in ("labelled", "path_endings"):
        what = f"rows of {table} whose label does not exist"
        yield "labels", what, f"{table} WHERE label NOT IN (SELECT id FROM labels)"


def _check_rows(connection: sqlite3.Connection) -> list[Finding]:
    """One finding for each part: what belongs to no record, and what records lack."""
    wrong: dict[str, list[str]] = {}
    for part, what, sql in _strays():
        faults = wrong.setdefault(part, [])
        if count := _count(connection, sql):
            faults.append(f"{count:,} {what}")
    return [
        Finding(part, False, "; ".join(faults), FIX, ROWS)
        if faults
        else Finding(part, True, "they fit the records")
        for part, faults in wrong.items()
    ]


def _count(connection: sqlite3.Connection, source: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {source}").fetchone()[0])


def mend_fulltext_of_all(store: Path) -> None:
    """Make the full text of every kind anew from the rows."""
    with store_errors(store), contextlib.closing(_open(store)) as connection, _counted(connection):
        for kind in Kind:
            rebuild_fulltext(connection, kind)


def mend_rows(store: Path) -> None:
    """Remove what belongs to no record, and make what records lack."""
    with store_errors(store), contextlib.closing(_open(store)) as connection, _counted(connection):
        strays = list(_strays())
        without_labels = {kind: _without_labels(connection, kind, strays) for kind in Kind}
        for _, what, sql in strays:
            if not what.startswith("records without"):
                connection.execute(f"DELETE FROM {sql}")
        for kind, ids in without_labels.items():
            _complete(connection, kind, ids)


def _without_labels(
    connection: sqlite3.Connection, kind: Kind, strays: list[tuple[str, str, str]]
) -> list[int]:
    part = f"labels of {SHAPES[kind].table}"
    sql = next(sql for of, what, sql in strays if of == part and what.startswith("records without"))
    return [id for (id,) in connection.execute(f"SELECT id FROM {sql}")]


def _complete(writer: sqlite3.Connection, kind: Kind, without_labels: list[int]) -> None:
    table = SHAPES[kind].table
    writer.execute(
        f"""INSERT OR IGNORE INTO pending (kind, record, created_at_epoch)
            SELECT '{kind}', id, created_at_epoch FROM {table}
            WHERE id NOT IN (SELECT id FROM {table}_vectors)"""
    )
    writer.execute(
        f"""INSERT OR IGNORE INTO costs (kind, record, read_tokens, discovery_tokens)
            SELECT '{kind}', record, read_tokens, discovery_tokens FROM {table}_costs"""
    )
    labels = LabelIds(writer)
    for record in read_records(writer, kind, without_labels).values():
        label(writer, kind, record, labels)


@contextlib.contextmanager
def _counted(connection: sqlite3.Connection) -> Iterator[None]:
    """One transaction, after which every cache of answers is out of date."""
    with immediate(connection):
        yield
        connection.execute("UPDATE generation SET number = number + 1")
