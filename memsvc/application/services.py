"""What the use cases work with."""

from dataclasses import dataclass

from memsvc.core.ports.store import Clock, Store
from memsvc.core.ports.vectors import SemanticSearch


@dataclass(frozen=True, slots=True)
class Services:
    """The adapters behind the ports, built once in `bootstrap`.

    Without `semantic` full text is all there is, and answers do not call it a lack.
    """

    store: Store
    clock: Clock
    semantic: SemanticSearch | None = None
