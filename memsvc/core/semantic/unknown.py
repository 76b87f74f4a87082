"""Records whose meaning is not known yet, ranked beside those whose meaning is."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from memsvc.core.fusion import Fused, Key


def estimate_unknown(fused: Mapping[Key, Fused], unknown: Collection[Key]) -> dict[Key, Fused]:
    """The fused candidates; those of unknown meaning get as much from it as from their words.

    A record must not fall behind others only because it is not embedded yet.
    """
    most = Fused(
        max((parts.lexical for parts in fused.values()), default=0.0),
        max((parts.semantic for parts in fused.values()), default=0.0),
    )
    factor = most.semantic / most.lexical if most.lexical else 0.0
    return {
        key: replace(parts, semantic=parts.lexical * factor) if key in unknown else parts
        for key, parts in fused.items()
    }
