"""Stores records and forgets them."""

from typing import Any

from memsvc.application.requests import WriteRequest
from memsvc.application.services import Services
from memsvc.core.errors import NotFound
from memsvc.core.ports.store import Outcome
from memsvc.core.records import Ref


def write_records(services: Services, request: WriteRequest) -> dict[str, Any]:
    """Store records and return the outcome for each."""
    records = [record for _, record in request.records]
    receipts = services.store.write(records, request.work_sessions)
    results = [
        {
            "place": place,
            "ref": str(receipt.ref) if receipt.ref else None,
            "outcome": str(receipt.outcome),
        }
        for (place, _), receipt in zip(request.records, receipts, strict=True)
    ]
    counts = {str(o): sum(receipt.outcome is o for receipt in receipts) for o in Outcome}
    return {**counts, "refused": list(request.refused), "results": results}


def forget(services: Services, ref: Ref) -> dict[str, Any]:
    """Forget one record everywhere. Raises NotFound."""
    if not services.store.forget(ref):
        raise NotFound(f"There is no {ref.kind} {ref}; nothing was forgotten.")
    return {"forgotten": str(ref), "kind": str(ref.kind)}
