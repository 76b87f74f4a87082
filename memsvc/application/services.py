"""The services that the use cases depend on."""

from dataclasses import dataclass
from typing import Final

from memsvc.core.ports.masking import Mask, no_mask
from memsvc.core.ports.store import Clock, Store
from memsvc.core.ports.vectors import SemanticSearch
from memsvc.core.recency import latest_moment

SWITCHED_OFF: Final = "Semantic search is switched off; unset MEMSVC_SEMANTIC to use it."


@dataclass(frozen=True, slots=True)
class Services:
    """The adapters behind the ports, built in `bootstrap`.

    Without `semantic` there is only full text; `no_semantic` is what answers then say about it,
    empty where there is nothing to say. `mask` finds the secrets that are not to be stored.
    """

    store: Store
    clock: Clock
    semantic: SemanticSearch | None = None
    no_semantic: str = ""
    mask: Mask = no_mask

    @property
    def latest(self) -> int:
        """The last moment that is not the future (ms)."""
        return latest_moment(self.clock())
