"""What was perhaps meant by a value or a word that nothing carries."""

import difflib
from collections.abc import Iterable
from typing import Any

from memsvc.application.requests import Search
from memsvc.application.services import Services
from memsvc.core.paths import normal_path
from memsvc.core.query import MAX_TERMS


def suggest(services: Services, search: Search, total: int) -> dict[str, Any]:
    """What to say of a query that was cut short or found nothing."""
    notes: dict[str, Any] = {}
    if search.query.ignored:
        notes["notice"] = (
            f"The first {MAX_TERMS} different terms were searched, {search.query.ignored} ignored."
        )
    if total:
        return notes
    if nearest := _nearest_values(services, search):
        notes["nearest"] = nearest
    elif search.query.searchable:
        notes["did_you_mean"] = list(
            dict.fromkeys(
                word for kind in search.kinds for word in services.store.suggest(kind, search.query)
            )
        )
    elif search.wordless:
        notes["notice"] = "The query holds no letter or digit to search for."
    return notes


def _nearest_values(services: Services, search: Search) -> dict[str, list[str]]:
    """For each filter value that no record carries, the nearest values in use."""
    nearest: dict[str, list[str]] = {}
    for field, values in search.selection.groups:
        in_use = [
            name for kind in search.kinds for name in services.store.count_values(kind, field)
        ]
        for value in values:
            if "*" not in value and (near := nearest_names(field, value, in_use)):
                nearest.setdefault(field, []).extend(near)
    return nearest


def nearest_names(field: str, value: str, in_use: Iterable[str]) -> list[str]:
    """The names most like one that is not in use; empty if it is."""
    if field == "file":
        return _nearest_paths(normal_path(value), in_use)
    known = {name.casefold(): name for name in in_use}
    if value.casefold() in known:
        return []
    near = difflib.get_close_matches(value.casefold(), known, n=3, cutoff=0.5)
    return [known[name] for name in near] or list(known.values())[:5]


def _nearest_paths(path: str, in_use: Iterable[str]) -> list[str]:
    """Paths whose last part is like that of a path no record names."""
    wanted = path.casefold().rsplit("/", 1)[-1]
    by_name: dict[str, str] = {}
    for known in in_use:
        name = known.casefold().rsplit("/", 1)[-1]
        if abs(len(name) - len(wanted)) <= 3 and name[:1] == wanted[:1]:
            by_name.setdefault(name, known)
    near = difflib.get_close_matches(wanted, by_name, n=3, cutoff=0.7)
    return [by_name[name] for name in near if by_name[name] != path]
