"""Labels: the values that records are filtered by, and the work session they belong to."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memsvc.core.filters import FIELDS, Filter
from memsvc.core.paths import is_glob, normal_path, path_endings
from memsvc.core.records import Kind, Record

Sql = tuple[str, list[object]]
"""An SQL fragment and its parameter values."""

_AFTER_ALL = "\U0010ffff"  # sorts after every character that a path can contain


@dataclass(frozen=True, slots=True)
class Label:
    """A value that records have; `value` is compared, `name` is shown."""

    field: str
    value: str
    name: str


def labels_of(record: Record) -> list[Label]:
    """The labels of a record, each once."""
    project_key = record.project.casefold()
    work = Label("work", f"{project_key}\n{record.session_id}", record.session_id)
    labels = [
        Label(field.name, field.key(value), value)
        for field in FIELDS.values()
        for value in field.values(record)
    ]
    return list({(label.field, label.value): label for label in [work, *labels]}.values())


class LabelIds:
    """The ids of labels within one transaction; each is looked up or created once."""

    def __init__(self, writer: sqlite3.Connection) -> None:
        self._writer = writer
        self._ids: dict[tuple[Kind, str, str], int] = {}

    def of(self, kind: Kind, label: Label) -> int:
        """The id of a label, created if it is new."""
        key = (kind, label.field, label.value)
        if key not in self._ids:
            sql = "SELECT id FROM labels WHERE kind = ? AND field = ? AND value = ?"
            found = self._writer.execute(sql, key).fetchone()
            self._ids[key] = int(found[0]) if found else _new_label(self._writer, kind, label)
        return self._ids[key]

    def drop_unused(self, kind: Kind, labels: Iterable[Label]) -> None:
        """Remove those of these labels that no record has any more."""
        for label in labels:
            key = (kind, label.field, label.value)
            unused = self._writer.execute(
                """DELETE FROM labels WHERE kind = ? AND field = ? AND value = ?
                   AND NOT EXISTS (SELECT 1 FROM labelled WHERE label = labels.id) RETURNING id""",
                key,
            ).fetchall()
            if unused:
                self._ids.pop(key, None)
            self._writer.executemany(
                "DELETE FROM path_endings WHERE ending = ? AND label = ?",
                ((ending, id) for (id,) in unused for ending in path_endings(label.value)),
            )


def _new_label(writer: sqlite3.Connection, kind: Kind, label: Label) -> int:
    cursor = writer.execute(
        "INSERT INTO labels (kind, field, value, name) VALUES (?, ?, ?, ?)",
        (kind, label.field, label.value, label.name),
    )
    new_id = int(cursor.lastrowid or 0)
    if _is_path(label.field):
        writer.executemany(
            "INSERT INTO path_endings (ending, label) VALUES (?, ?)",
            ((ending, new_id) for ending in path_endings(label.value)),
        )
    return new_id


def label_groups(kind: Kind, selection: Filter) -> list[Sql]:
    """For each group of the filter, the right side of a comparison with a label id: `= (...)` or
    `IN (...)`. A record must have a matching label for every group.
    """
    return [
        (matching_file_labels if _is_path(field) else _value_labels)(kind, field, values)
        for field, values in selection.groups
    ]


def _is_path(field: str) -> bool:
    return field in FIELDS and FIELDS[field].is_path


def _value_labels(kind: Kind, field: str, values: Sequence[str]) -> Sql:
    found = "SELECT id FROM labels WHERE kind = ? AND field = ? AND value"
    keys = [FIELDS[field].key(value) if field in FIELDS else value for value in values]
    if len(keys) == 1:  # with a plain comparison the index keeps its time order
        return f"= ({found} = ?)", [kind, field, keys[0]]
    return f"IN ({found} IN (SELECT value FROM json_each(?)))", [kind, field, json.dumps(keys)]


def matching_file_labels(kind: Kind, field: str, patterns: Sequence[str]) -> Sql:
    """The labels of all paths that match any of the patterns, as defined by `path_matches`."""
    paths = list(dict.fromkeys(map(normal_path, patterns)))
    # a leading star may also stand for the beginning of the path
    loose = [_sqlite_glob(path) for path in paths if path.startswith("*")]
    ranges = [each for path in paths if not path.startswith("*") for each in _ranges(path)]
    # lists are passed as JSON, because the length of an SQL expression is limited
    return (
        """IN (SELECT labels.id FROM json_each(?) AS named
                CROSS JOIN labels ON kind = ? AND field = ? AND labels.value GLOB named.value
            UNION SELECT labels.id FROM json_each(?) AS named
                CROSS JOIN path_endings ON ending GLOB json_extract(named.value, '$[2]')
                AND ending BETWEEN json_extract(named.value, '$[0]')
                    AND json_extract(named.value, '$[1]')
                JOIN labels ON labels.id = label AND kind = ? AND field = ?)""",
        [json.dumps(loose), kind, field, json.dumps(ranges), kind, field],
    )


def _ranges(path: str) -> list[tuple[str, str, str]]:
    """The ranges of endings that a path matches: first, last, and a glob to match too."""
    if is_glob(path):
        beginning = path.partition("*")[0]
        return [(beginning, f"{beginning}{_AFTER_ALL}", _sqlite_glob(path))]
    return [(path, path, "*"), (f"{path}/", f"{path}/{_AFTER_ALL}", "*")]


def _sqlite_glob(pattern: str) -> str:
    """The pattern for SQLite's GLOB, with `?` and `[` escaped."""
    return "".join(f"[{letter}]" if letter in "?[" else letter for letter in pattern)
