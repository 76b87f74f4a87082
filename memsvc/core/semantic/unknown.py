"""Records whose meaning is not known yet, ranked beside those whose meaning is."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from memsvc.core.fusion import Fused, Key


def estimate_unknown(fused: Mapping[Key, Fused], unknown: Collection[Key]) -> dict[Key, Fused]:
    """The fused candidates, where meaning decides as far as it is known.

    With u the share of unknown ones among the full-text matches, an unknown one gets as much from
    meaning as from its words (e, scaled to the best of both), any other e * u + (1 - u) * its own.
    So records that wait do not fall behind, and the ranking goes from full text's to the whole
    fusion's as records are embedded.
    """
    matches = [key for key, parts in fused.items() if parts.lexical]
    if not (unknown and matches):
        return dict(fused)
    share = sum(key in unknown for key in matches) / len(matches)
    most_lexical = max(fused[key].lexical for key in matches)
    factor = max(parts.semantic for parts in fused.values()) / most_lexical
    return {
        key: _mixed(parts, parts.lexical * factor, 1.0 if key in unknown else share)
        for key, parts in fused.items()
    }


def _mixed(parts: Fused, estimate: float, share: float) -> Fused:
    return replace(parts, semantic=share * estimate + (1 - share) * parts.semantic)
