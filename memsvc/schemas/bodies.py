"""Request bodies with records: one, a list, or a bundle of lists. A bad record does not block the
others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from marshmallow import ValidationError

from memsvc.core.errors import BadRequest, BodyTooLarge
from memsvc.core.records import SHAPES, Kind, Record, WorkSession
from memsvc.schemas.records import Timestamp, clean_text, load_record, refusal

MAX_RECORDS: Final = 1000
"""Records and work sessions per request: a second of work, for which other writes wait."""

DEFAULT_SOURCE = "api"
"""The source of records that name none."""

BUNDLE_KINDS = {
    "observations": Kind.OBSERVATION,
    "sessions": Kind.SESSION,
    "summaries": Kind.SESSION,
    "prompts": Kind.PROMPT,
}
"""The lists of a bundle, with the kind of each; `records` may mix kinds, each record naming its
own.
"""

BUNDLE_LISTS = {*BUNDLE_KINDS, "records", "work_sessions"}

SESSION_IDS = ("session_id", "memory_session_id", "content_session_id")
"""Names that clients use for the id of a work session; the first one present counts."""


@dataclass(frozen=True, slots=True)
class Body:
    """The content of a body: records with their places, work sessions, and what was refused."""

    records: tuple[tuple[str, Record], ...]
    work_sessions: tuple[WorkSession, ...]
    refused: tuple[dict[str, Any], ...]


def read_body(body: Any, kind: Kind | None) -> Body:
    """The records of a body, only of this kind if given.

    Raises BodyTooLarge for more than MAX_RECORDS, and BadRequest if all are refused.
    """
    _require_few(body)
    records: list[tuple[str, Record]] = []
    refused: list[dict[str, Any]] = []
    work_sessions: list[WorkSession] = []
    for place, item in _items(body, kind):
        try:
            if _is_work_session(item):
                work_sessions.append(_work_session(item))
            else:
                records.append((place, load_record(item, source=DEFAULT_SOURCE)))
        except ValidationError as error:
            refused.append({"place": place, "errors": refusal(error)})
    if refused and not records and not work_sessions:
        raise _all_refused(refused)
    return Body(tuple(records), tuple(work_sessions), tuple(refused))


def _require_few(body: Any) -> None:
    named = [body.get(name) for name in BUNDLE_LISTS] if isinstance(body, Mapping) else [body]
    number = sum(len(items) for items in named if isinstance(items, list))
    if number > MAX_RECORDS:
        raise BodyTooLarge(
            f"The body has {number:,} records; allowed: at most {MAX_RECORDS:,} in one request. "
            "Send them in several requests, or import a file: memsvc import jsonl FILE."
        )


def _items(body: Any, kind: Kind | None) -> Iterator[tuple[str, Any]]:
    """Every record of a body, with its place."""
    if isinstance(body, list):
        yield from _listed("", body, kind)
    elif isinstance(body, Mapping) and (lists := BUNDLE_LISTS & body.keys()) and "kind" not in body:
        memory_ids = _memory_ids(body)
        for name in sorted(lists):
            for place, item in _listed(name, body[name], BUNDLE_KINDS.get(name)):
                yield place, _in_memory_session(item, memory_ids)
    else:
        yield "record", _with_kind(body, kind)


def _memory_ids(body: Mapping[str, Any]) -> dict[str, str]:
    """claude-mem has two ids per work session: content id → memory id."""
    sessions = body.get("sessions")
    return {
        str(item["content_session_id"]): str(item["memory_session_id"])
        for item in (sessions if isinstance(sessions, list) else [])
        if isinstance(item, Mapping)
        and item.get("content_session_id")
        and item.get("memory_session_id")
    }


def _in_memory_session(item: Any, memory_ids: Mapping[str, str]) -> Any:
    if not isinstance(item, Mapping) or any(item.get(name) for name in SESSION_IDS[:2]):
        return item
    content_id = str(item.get("content_session_id"))
    return {**item, "session_id": memory_ids[content_id]} if content_id in memory_ids else item


def _listed(name: str, items: Any, kind: Kind | None) -> Iterator[tuple[str, Any]]:
    if not isinstance(items, list):
        message = "expected a list of records"
        raise BadRequest(f"{name}: {message}", {name: [message]})
    for index, item in enumerate(items):
        yield f"{name}[{index}]", _with_kind(item, kind)


def _with_kind(item: Any, kind: Kind | None) -> Any:
    if kind is None or not isinstance(item, Mapping) or _is_work_session(item):
        return item
    if item.get("kind") not in (None, kind):
        return {**item, "kind": f"{str(item['kind'])[:80]} (this route accepts only {kind})"}
    return {**item, "kind": kind}


def _is_work_session(item: Any) -> bool:
    """Whether an item is a work session: it has a start time and no text."""
    return (
        isinstance(item, Mapping)
        and "started_at_epoch" in item
        and not any(item.get(name) for shape in SHAPES.values() for name in shape.texts)
    )


def _work_session(item: Mapping[str, Any]) -> WorkSession:
    session_id = next((_text(item, name) for name in SESSION_IDS if item.get(name)), "")
    if not session_id:
        raise ValidationError({"session_id": ["missing; it is required"]})
    timestamp = Timestamp(allow_none=True)
    return WorkSession(
        session_id=session_id,
        project=_text(item, "project"),
        started_at_epoch=timestamp.deserialize(item["started_at_epoch"]) or 0,
        completed_at_epoch=timestamp.deserialize(item.get("completed_at_epoch")),
        status=_text(item, "status") or "active",
    )


def _text(item: Mapping[str, Any], name: str) -> str:
    return clean_text(str(item.get(name) or ""))


def _all_refused(refused: list[dict[str, Any]]) -> BadRequest:
    errors = {
        f"{entry['place']}.{name}": messages
        for entry in refused[:20]
        for name, messages in entry["errors"].items()
    }
    name, messages = next(iter(errors.items()))
    return BadRequest(f"Nothing was stored: {name}: {messages[0]}", errors)
