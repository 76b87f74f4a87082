"""What records are selected by: type, concept, project, file, work session."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memsvc.model import Filter, Kind, Observation, Record, Summary
from memsvc.paths import is_glob, normal_path, path_endings, sqlite_glob

Sql = tuple[str, list[object]]
"""A piece of SQL and the values of its parameters."""


@dataclass(frozen=True, slots=True)
class Label:
    """One value that records carry; `value` is compared, `name` is the spelling shown."""

    field: str
    value: str
    name: str


def labels_of(record: Record) -> list[Label]:
    """Every label that a record carries, once each."""
    project_key = record.project.casefold()
    labels = [
        Label("project", project_key, record.project),
        Label("work", f"{project_key}\n{record.session_id}", record.session_id),
        *(Label("file", path, path) for path in sorted(files_of(record))),
    ]
    if isinstance(record, Observation):
        labels.append(Label("type", record.type.casefold(), record.type))
        labels += [Label("concept", name.casefold(), name) for name in record.concepts]
    return list({(label.field, label.value): label for label in labels}.values())


def files_of(record: Record) -> set[str]:
    """The normalised paths of every file that a record names."""
    named: tuple[str, ...] = ()
    if isinstance(record, Observation):
        named = record.files_read + record.files_modified
    elif isinstance(record, Summary):
        named = record.files_read + record.files_edited
    return {normal_path(path) for path in named} - {""}


class LabelIds:
    """The ids of labels inside one transaction: each is looked up, or made, once."""

    def __init__(self, writer: sqlite3.Connection) -> None:
        self._writer = writer
        self._ids: dict[tuple[Kind, str, str], int] = {}

    def of(self, kind: Kind, label: Label) -> int:
        """The id of a label, made if it is new."""
        key = (kind, label.field, label.value)
        if key not in self._ids:
            sql = "SELECT id FROM labels WHERE kind = ? AND field = ? AND value = ?"
            found = self._writer.execute(sql, key).fetchone()
            self._ids[key] = int(found[0]) if found else _new_label(self._writer, kind, label)
        return self._ids[key]


def _new_label(writer: sqlite3.Connection, kind: Kind, label: Label) -> int:
    cursor = writer.execute(
        "INSERT INTO labels (kind, field, value, name) VALUES (?, ?, ?, ?)",
        (kind, label.field, label.value, label.name),
    )
    new_id = int(cursor.lastrowid or 0)
    if label.field == "file":
        writer.executemany(
            "INSERT INTO path_endings (ending, label) VALUES (?, ?)",
            ((ending, new_id) for ending in path_endings(label.value)),
        )
    return new_id


def drop_unused(writer: sqlite3.Connection, kind: Kind, labels: Iterable[Label]) -> None:
    """Remove those of these labels that no record carries any more."""
    for label in labels:
        unused = writer.execute(
            """DELETE FROM labels WHERE kind = ? AND field = ? AND value = ?
               AND NOT EXISTS (SELECT 1 FROM labelled WHERE label = labels.id) RETURNING id""",
            (kind, label.field, label.value),
        ).fetchall()
        writer.executemany(
            "DELETE FROM path_endings WHERE ending = ? AND label = ?",
            ((ending, id) for (id,) in unused for ending in path_endings(label.value)),
        )


def label_groups(kind: Kind, selection: Filter) -> list[Sql]:
    """For each group of the filter, what a label of a selected record must be: the right side of
    a comparison, `= (...)` or `IN (...)`. A record must carry a label for every group.
    """
    return [
        file_labels(kind, values) if field == "file" else _named_labels(kind, field, values)
        for field, values in selection.groups
    ]


def _named_labels(kind: Kind, field: str, values: Sequence[str]) -> Sql:
    found = "SELECT id FROM labels WHERE kind = ? AND field = ? AND value"
    if len(values) == 1:  # a plain comparison keeps the index's order of time
        return f"= ({found} = ?)", [kind, field, values[0].casefold()]
    folded = json.dumps([value.casefold() for value in values])
    return f"IN ({found} IN (SELECT value FROM json_each(?)))", [kind, field, folded]


def file_labels(kind: Kind, patterns: Sequence[str]) -> Sql:
    """The labels of the files that any of the patterns names: a path, its ending, a folder, a `*`
    glob."""
    named = [_endings(pattern) for pattern in patterns]
    conditions = " OR ".join(condition for condition, _ in named)
    return (
        f"""IN (SELECT path_endings.label FROM path_endings
            JOIN labels ON labels.id = path_endings.label
            WHERE ({conditions}) AND labels.kind = ?)""",
        [*(value for _, values in named for value in values), kind],
    )


def _endings(pattern: str) -> Sql:
    path = normal_path(pattern)
    if is_glob(path):
        return "ending GLOB ?", [sqlite_glob(path)]
    # everything below a folder: "0" is the character after "/"
    return "ending = ? OR (ending >= ? AND ending < ?)", [path, f"{path}/", f"{path}0"]
