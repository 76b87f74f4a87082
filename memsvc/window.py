"""The bound in time: recent relevant matches before older ones, and nothing hidden.

A hit scores (1 - b) * relevance + b when it lies inside the bound and is at least t times as
relevant as the best match of all. With b = (1 - t) / (2 - t) that is a strict order: every recent
relevant match comes before every older one, while weak recent ones stand among the older by their
relevance alone.
"""

from collections.abc import Iterable
from dataclasses import replace

from memsvc.model import Hit

DEFAULT_DAYS = 90
"""How far back the default bound reaches."""

RELEVANT = 0.8
"""t: the share of the best match's relevance from which a recent match comes first."""

BOOST = (1 - RELEVANT) / (2 - RELEVANT)
"""b: what being recent and relevant adds to the score."""


def place_in_window(hits: Iterable[Hit], bound: int | None) -> list[Hit]:
    """Hits in their final order, best first; `bound` (ms) starts the window, None means none."""
    found = list(hits)
    if bound is not None:
        best = max((hit.relevance for hit in found), default=0.0)
        found = [_placed(hit, bound, RELEVANT * best) for hit in found]
    return sorted(found, key=lambda hit: (-hit.score, -hit.created_at_epoch, hit.ref.id))


def _placed(hit: Hit, bound: int, enough: float) -> Hit:
    """A hit with its share of relevance and of recency."""
    inside = hit.created_at_epoch >= bound
    recency = BOOST if inside and hit.relevance >= enough else 0.0
    relevance = (1 - BOOST) * hit.relevance
    return replace(hit, relevance=relevance, recency=recency, older=not inside)
