"""What the use cases work with."""

from dataclasses import dataclass

from memsvc.ports import Clock, Store


@dataclass(frozen=True, slots=True)
class Services:
    """The adapters behind the ports, built once in `bootstrap`."""

    store: Store
    clock: Clock
