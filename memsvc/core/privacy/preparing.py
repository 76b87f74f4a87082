"""Prepares what is to be stored: private parts are taken out and secrets are masked."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from typing import Any, Final, Generic, TypeVar

from memsvc.core.ports.masking import Mask
from memsvc.core.privacy.private_parts import list_without_private, without_private
from memsvc.core.records import SHAPES, Record, WorkSession, content_source_id, kind_of

Item = TypeVar("Item", Record, WorkSession)

_IDENTIFIERS: Final = frozenset({"session_id", "source_id"})
_HASHED: Final = "masked-"


@dataclass(frozen=True, slots=True)
class Prepared(Generic[Item]):
    """An item as it may be stored, None if nothing of it may; the kinds of the secrets that were
    masked, and whether private parts were taken out.
    """

    item: Item | None
    secrets: tuple[str, ...] = ()
    private: bool = False


def prepare_record(record: Record, mask: Mask) -> Prepared[Record]:
    """A record as it may be stored. A private one that has no text left may not be stored."""
    prepared = _prepare(record, mask)
    kept = prepared.item
    if kept is None or kept is record:
        return prepared
    if prepared.private and not _has_text(kept):
        return Prepared(None, prepared.secrets, private=True)
    return replace(prepared, item=_with_source_id(record, kept))


def _with_source_id(record: Record, kept: Record) -> Record:
    """The record with an id made from its new content, if its id was made from its content."""
    before, after = content_source_id(record, dated=False), content_source_id(kept, dated=False)
    if not record.source_id.startswith(before):
        return kept
    return replace(kept, source_id=after + record.source_id.removeprefix(before))


def prepare_work_session(session: WorkSession, mask: Mask) -> Prepared[WorkSession]:
    """A work session as it may be stored."""
    return _prepare(session, mask)


def _prepare(item: Item, mask: Mask) -> Prepared[Item]:
    # most records hold nothing to hide: one look at all their text together is enough
    whole = "\n".join(_texts(item))
    is_private = without_private(whole) != whole
    if not is_private and not mask(whole).secrets:
        return Prepared(item)
    open_item = _changed(item, _opened) if is_private else item
    secrets: list[str] = []

    def masked(name: str, text: str) -> str:
        found = mask(text)
        secrets.extend(found.secrets)
        return _identifier(text) if found.secrets and name in _IDENTIFIERS else found.text

    kept = _changed(open_item, lambda name, value: _each(name, value, masked))
    return Prepared(kept, tuple(secrets), private=open_item != item)


def _texts(item: Record | WorkSession) -> list[str]:
    values = (getattr(item, field.name) for field in fields(item))
    return [
        text
        for value in values
        for text in ((value,) if isinstance(value, str) else value if _is_list(value) else ())
        if text
    ]


def _is_list(value: Any) -> bool:
    return isinstance(value, tuple)


def _changed(item: Item, change: Callable[[str, Any], Any]) -> Item:
    """The item with its texts and lists of texts changed; itself if none differs."""
    before = {field.name: getattr(item, field.name) for field in fields(item)}
    after = {
        name: changed
        for name, value in before.items()
        if isinstance(value, str | tuple) and (changed := change(name, value)) != value
    }
    return replace(item, **after) if after else item


def _opened(name: str, value: Any) -> Any:
    """A text or a list of texts without private parts."""
    if _is_list(value):
        return list_without_private(value)
    open_text = without_private(value)
    return _identifier(value) if open_text != value and name in _IDENTIFIERS else open_text


def _each(name: str, value: Any, change: Callable[[str, str], str]) -> Any:
    if _is_list(value):
        return tuple(change(name, text) for text in value)
    return change(name, value)


def _identifier(text: str) -> str:
    """What stands for an identifier that must not be stored: another for every other one."""
    return f"{_HASHED}{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def _has_text(record: Record) -> bool:
    return any("".join(getattr(record, name)).strip() for name in SHAPES[kind_of(record)].texts)
