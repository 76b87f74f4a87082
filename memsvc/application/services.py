"""The services that the use cases depend on."""

from dataclasses import dataclass

from memsvc.core.ports.store import Clock, Store
from memsvc.core.ports.vectors import SemanticSearch


@dataclass(frozen=True, slots=True)
class Services:
    """The adapters behind the ports, built in `bootstrap`.

    Without `semantic` there is only full text, and answers are not called degraded.
    """

    store: Store
    clock: Clock
    semantic: SemanticSearch | None = None
