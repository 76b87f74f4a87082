"""Stores records and forgets them."""

from collections.abc import Mapping
from typing import Any

from memsvc.application.privacy import intake
from memsvc.application.privacy.forgetting import forget_matching
from memsvc.application.requests import ForgetRequest, WriteRequest
from memsvc.application.services import Services
from memsvc.core.errors import NotFound
from memsvc.core.ports.masking import Mask, mask_errors
from memsvc.core.ports.store import Outcome
from memsvc.core.records import Ref


def write_records(services: Services, request: WriteRequest) -> dict[str, Any]:
    """Store records and return the outcome for each."""
    records = [record for _, record in request.records]
    prepared = intake.prepare(records, request.work_sessions, services.mask)
    receipts = intake.write(services.store, prepared)
    results = [
        {
            "place": place,
            "ref": str(receipt.ref) if receipt.ref else None,
            "outcome": str(receipt.outcome),
        }
        for (place, _), receipt in zip(request.records, receipts, strict=True)
    ]
    counts = {str(o): sum(receipt.outcome is o for receipt in receipts) for o in Outcome}
    return {
        **counts,
        "masked": dict(prepared.masked),
        "refused": [_masked(refused, services.mask) for refused in request.refused],
        "results": results,
    }


def _masked(refused: Mapping[str, Any], mask: Mask) -> dict[str, Any]:
    """A refusal that quotes no secret."""
    return {**refused, "errors": mask_errors(refused["errors"], mask)}


def forget_many(services: Services, request: ForgetRequest) -> dict[str, Any]:
    """Forget all records that a request selects."""
    return forget_matching(services.store, request)


def forget(services: Services, ref: Ref) -> dict[str, Any]:
    """Forget one record everywhere. Raises NotFound."""
    if not services.store.forget(ref):
        raise NotFound(f"There is no {ref.kind} {ref}; nothing was forgotten.")
    return {"forgotten": str(ref), "kind": str(ref.kind)}
