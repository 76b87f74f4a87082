"""The records nearest in meaning to a text, and nothing else: no words, no fusion."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memsvc.answers.page import Page
from memsvc.application.requests import in_projects
from memsvc.application.search import make_rows
from memsvc.application.services import Services
from memsvc.core.dates import DAY_MS
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.ports.store import Hit
from memsvc.core.records import Kind, Ref


def search_memories(services: Services, given: Mapping[str, Any]) -> Page:
    """The nearest records of all kinds asked for, with similarity 1 / (1 + distance).

    Raises SemanticUnavailable: there is nothing to fall back on.
    """
    if services.semantic is None:
        raise SemanticUnavailable("This worker has no semantic index.")
    with services.store.snapshot():
        hits = _nearest(services, given)
        rows = make_rows(services, hits, given["format"])
    for row, hit in zip(rows, hits, strict=True):
        row["similarity"] = round(hit.relevance, 4)
    missing = services.semantic.missing()
    return Page(
        echo={"query": given["query"]},
        rows=rows,
        total=len(rows),
        limit=given["limit"],
        format=given["format"],
        strategy="semantic",
        notes={"degraded": missing} if missing else {},
        paged=False,
    )


def _nearest(services: Services, given: Mapping[str, Any]) -> list[Hit]:
    assert services.semantic is not None
    selection, limit = _selection(services, given), given["limit"]
    found = {
        Ref(kind, id): similarity(cosine)
        for kind in map(Kind, given["kinds"])
        for id, cosine in services.semantic.nearest(kind, given["query"], limit, selection)
    }
    best_first = sorted(found, key=lambda ref: (-found[ref], ref))
    moments = services.store.moments(best_first)
    return [Hit(ref, moments[ref], found[ref]) for ref in best_first if ref in moments][:limit]


def _selection(services: Services, given: Mapping[str, Any]) -> Filter:
    selection = in_projects(given)
    days = given.get("days_back")
    return replace(selection, since=services.clock() - days * DAY_MS) if days else selection


def similarity(cosine: float) -> float:
    """1 / (1 + d) with d the Euclidean distance of two vectors of length 1: 1 is the same."""
    return 1 / (1 + math.sqrt(max(0.0, 2 - 2 * cosine)))
