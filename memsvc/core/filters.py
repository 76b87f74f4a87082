"""Filters select records by a few fields. A new one is a row of `FIELDS` and a column that stores
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from memsvc.core.paths import normal_path, path_matches
from memsvc.core.records import SHAPES, Kind, Record, kind_of

Groups = tuple[tuple[str, tuple[str, ...]], ...]
"""(field, values) pairs: every group must match; the values of a group are alternatives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterField:
    """A field that records can be filtered by.

    `name` is its name in the query language (`type:bugfix`) and in a group; `parameter` is its name
    in a request, `spellings` are other names for that; `attributes` lists, for each kind that has
    the field, the attributes of a record with its values. Values ignore case; paths do not, and
    match as in `core.paths`.
    """

    name: str
    parameter: str
    description: str
    attributes: Mapping[Kind, tuple[str, ...]]
    spellings: tuple[str, ...] = ()
    is_path: bool = False

    def values(self, record: Record) -> tuple[str, ...]:
        """The values that a record has, each once, in order."""
        cells = (getattr(record, name) for name in self.attributes.get(kind_of(record), ()))
        listed = [value for cell in cells for value in ([cell] if isinstance(cell, str) else cell)]
        paths = [path for path in map(normal_path, listed) if path] if self.is_path else listed
        return tuple(dict.fromkeys(paths))

    def key(self, value: str) -> str:
        """The form in which a value is compared."""
        return value if self.is_path else value.casefold()


_OBSERVATION: Final = Kind.OBSERVATION

FIELDS: Final[dict[str, FilterField]] = {
    field.name: field
    for field in (
        FilterField(
            name="type",
            parameter="type",
            spellings=("obs_type",),
            description="such as bugfix,decision",
            attributes={_OBSERVATION: ("type",)},
        ),
        FilterField(
            name="concept",
            parameter="concepts",
            spellings=("concept",),
            description="such as gotcha,trade-off",
            attributes={_OBSERVATION: ("concepts",)},
        ),
        FilterField(
            name="file",
            parameter="files",
            spellings=("file", "filePath"),
            description="paths, endings, folders or * globs",
            attributes={kind: shape.files for kind, shape in SHAPES.items() if shape.files},
            is_path=True,
        ),
        FilterField(
            name="project",
            parameter="project",
            description="default: all",
            attributes={kind: ("project",) for kind in Kind},
        ),
    )
}
"""Every filter, by its name."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of records. `since` and `until` are inclusive, in ms since 1970, UTC."""

    groups: Groups = ()
    since: int | None = None
    until: int | None = None


EVERYTHING: Final = Filter()
"""The filter that selects every record."""


def selects(selection: Filter, record: Record) -> bool:
    """Whether a filter selects a record: the definition of a filter."""
    moment = record.created_at_epoch
    if selection.since is not None and moment < selection.since:
        return False
    if selection.until is not None and moment > selection.until:
        return False
    return all(_carries(record, FIELDS[name], values) for name, values in selection.groups)


def _carries(record: Record, field: FilterField, wanted: tuple[str, ...]) -> bool:
    carried = field.values(record)
    if field.is_path:
        return any(path_matches(pattern, path) for pattern in wanted for path in carried)
    return not {field.key(value) for value in wanted}.isdisjoint(map(field.key, carried))


def value_groups(record: Record) -> Groups:
    """The values to filter a record by, without paths: (field, compared values), sorted."""
    carried = (
        (name, sorted({field.key(value) for value in field.values(record)}))
        for name, field in FIELDS.items()
        if not field.is_path and kind_of(record) in field.attributes
    )
    return tuple((name, tuple(values)) for name, values in carried)


def without_paths(selection: Filter) -> Filter:
    """The same filter without paths, which a semantic index cannot filter by."""
    groups = tuple(group for group in selection.groups if not FIELDS[group[0]].is_path)
    return Filter(groups, selection.since, selection.until)
