"""Companions: other records of the same work session. A short record is found with their help."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memsvc.core.ports.store import Hit, Origin
from memsvc.core.records import Ref

COMPANION_WEIGHT: Final = 0.2
"""How much the best companion counts beside the record itself.

Without it four evaluation sets lose .01 nDCG@10 or more, and adversarial questions .02; one set of
long records gains .005. At .3 paraphrases lose .01.
"""

MAX_SHORT: Final = 200
"""Characters up to which a record leaves the most to its companions; one twice as long, half."""


@dataclass(frozen=True, slots=True)
class _Best:
    """The most relevant record of a work session, and the relevance of the next."""

    ref: Ref
    relevance: float
    next: float


def lift_companions(hits: Sequence[Hit], origins: Mapping[Ref, Origin]) -> list[Hit]:
    """The same hits; those whose work session has other relevant records come out ahead.

    With c the relevance of its best companion among the hits, and w = COMPANION_WEIGHT, which falls
    with the length of a record beyond MAX_SHORT, a record gets (relevance + w * c) divided by
    1 + COMPANION_WEIGHT, so that 1 is still the most.
    """
    best = _best_of(hits, origins)
    return [_lifted(hit, origins.get(hit.ref), best) for hit in hits]


def _best_of(hits: Sequence[Hit], origins: Mapping[Ref, Origin]) -> dict[Hashable, _Best]:
    best: dict[Hashable, _Best] = {}
    for hit in sorted(hits, key=lambda hit: (-hit.relevance, hit.ref)):
        session = _session(hit.ref, origins.get(hit.ref))
        known = best.get(session)
        if known is None:
            best[session] = _Best(hit.ref, hit.relevance, 0.0)
        elif not known.next:
            best[session] = replace(known, next=hit.relevance)
    return best


def _lifted(hit: Hit, origin: Origin | None, best: Mapping[Hashable, _Best]) -> Hit:
    companion = 0.0
    if origin and origin.session_id:
        first = best[_session(hit.ref, origin)]
        share = min(1.0, MAX_SHORT / max(1, origin.length))
        companion = share * (first.next if first.ref == hit.ref else first.relevance)
    relevance = (hit.relevance + COMPANION_WEIGHT * companion) / (1 + COMPANION_WEIGHT)
    return replace(hit, relevance=relevance)


def _session(ref: Ref, origin: Origin | None) -> Hashable:
    """What records of one kind and one work session share; a record without one is by itself."""
    if origin is None or not origin.session_id:
        return ref
    return ref.kind, origin.project.casefold(), origin.session_id
