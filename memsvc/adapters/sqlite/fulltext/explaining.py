"""Which terms of a query a record holds, and where.

The index itself answers, so stemming and accents work as in the search.
"""

import json
import re
from collections.abc import Iterator, Sequence

from memsvc.adapters.sqlite.fulltext.match import expression
from memsvc.adapters.sqlite.fulltext.search import TextSearch
from memsvc.core.ports.store import Terms
from memsvc.core.records import SHAPES, Kind


def matched_terms(search: TextSearch, ids: Sequence[int]) -> dict[int, Terms]:
    """The words and phrases that each of a few records holds, with the columns they occur in."""
    found: dict[int, Terms] = {id: {} for id in ids}
    for term in dict.fromkeys([*search.idfs, *search.required]):
        shown = re.sub(r'^.* : |"', "", term)
        for id, columns in _holders(search, term, ids):
            found[id][shown] = columns
    for id in ids:
        for term, field in _beside_text(search, id):
            found[id].setdefault(term, []).append(field)
    return found


def _beside_text(search: TextSearch, id: int) -> Iterator[tuple[str, str]]:
    """The terms that a record matches by its author or its commit, each with that field."""
    for term in search.query.required:
        if term.author and _is_in(search, expression(term), id, "tags"):
            yield term.text, "author"
    for commit in search.named.get(id, ()):
        yield commit.hash, "source_id"


def _holders(search: TextSearch, term: str, ids: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
    """The records among these that hold a term, each with the columns that do."""
    if "*" in term:
        yield from _marked(search, term, ids)
        return
    for id in ids:
        if columns := [
            column for column in _columns(search.kind) if _is_in(search, term, id, column)
        ]:
            yield id, columns


def _is_in(search: TextSearch, term: str, id: int, column: str) -> bool:
    fts = f"{search.table}_fts"
    sql = f"SELECT 1 FROM {fts} WHERE {fts} MATCH ? AND rowid = ?"
    return search.connection.execute(sql, (f"{{{column}}} : ({term})", id)).fetchone() is not None


def _marked(search: TextSearch, term: str, ids: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
    """The same for a prefix, in one statement: each looks up all words that begin with it."""
    fts, columns = f"{search.table}_fts", _columns(search.kind)
    held = ", ".join(
        f"highlight({fts}, {place}, '<', '') <> {column}" for place, column in enumerate(columns)
    )
    rows = search.connection.execute(
        f"""SELECT rowid, {held} FROM {fts} WHERE {fts} MATCH ?
            AND +rowid IN (SELECT value FROM json_each(?))""",
        (term, json.dumps(list(ids))),
    )
    for id, *marks in rows:
        if names := [column for column, mark in zip(columns, marks, strict=True) if mark]:
            yield id, names


def _columns(kind: Kind) -> list[str]:
    return [*SHAPES[kind].texts, *(["files"] if SHAPES[kind].files else []), "parts"]
