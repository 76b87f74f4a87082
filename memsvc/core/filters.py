"""Which records may be found."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records may be found: every group must hold, the values of a group are alternatives.

    A group is (field, values) with field one of project, type, concept, file; files are paths,
    path endings, folders or `*` globs. `since` and `until` are inclusive, in ms.
    """

    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    since: int | None = None
    until: int | None = None
