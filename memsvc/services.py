"""What the use cases work with."""

from dataclasses import dataclass

from memsvc.ports import Clock, SemanticSearch, Store


@dataclass(frozen=True, slots=True)
class Services:
    """The adapters behind the ports, built once in `bootstrap`.

    Without `semantic` full text is all there is, and answers do not call it a lack.
    """

    store: Store
    clock: Clock
    semantic: SemanticSearch | None = None
