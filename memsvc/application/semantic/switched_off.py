"""Semantic search switched off by the user: every query raises SemanticUnavailable."""

from collections.abc import Sequence
from typing import Any, Final

from memsvc.core.errors import SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.records import Kind

OFF: Final = "Semantic search is switched off; unset MEMSVC_SEMANTIC to use it."


class SwitchedOff:
    """The SemanticSearch port without an index.

    Not the same as no port at all: here answers say that semantic search was not used, and why.
    """

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def prepare(self, text: str) -> None:
        pass

    def nearest(
        self, kind: Kind, text: str, limit: int, selection: Filter
    ) -> list[tuple[int, float]]:
        raise SemanticUnavailable(OFF)

    def compare(self, kind: Kind, text: str, ids: Sequence[int]) -> list[tuple[int, float]]:
        raise SemanticUnavailable(OFF)

    def step(self) -> int:
        raise SemanticUnavailable(OFF)

    def ask_rebuild(self) -> None:
        raise SemanticUnavailable(OFF)

    def missing(self) -> str:
        return ""

    def report(self) -> dict[str, Any]:
        return {"ok": False, "detail": OFF, "waiting": 0, "rebuilds": 0}
