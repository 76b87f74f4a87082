"""Answers as compact text that loses nothing, for agents and for people at a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from memsvc.answers.page import Page, Row, with_own_cost
from memsvc.answers.quoting import cell, field_lines, name_of, one_line, visible
from memsvc.core.dates import local_day, local_text
from memsvc.core.records import Kind, Ref


def write_text(page: Page) -> str:
    """A page as text: a header, one table row per record (or the full record), and a next step."""
    return _page_text(page, [line for row in page.rows for line in _row(row, page.format)])


def write_matches(page: Page) -> str:
    """A page as a numbered list, best first, with the similarity of each row."""
    if page.format == "full":
        return write_text(page)
    return _page_text(page, [_match(number, row) for number, row in enumerate(page.rows, 1)])


def _page_text(page: Page, rows: list[str]) -> str:
    lines = visible("\n".join([*rows, *_notes(page), *_closing(page)]))
    return with_own_cost(lambda this: f"{_header(page, this)}\n{lines}".rstrip("\n") + "\n")


def _header(page: Page, this: int) -> str:
    shown = f"{len(page.rows)} of {page.total}"
    if page.offset:
        shown = f"{page.offset + 1}-{page.offset + len(page.rows)} of {page.total}"
    facts = [shown, *_folded(page.folded), page.strategy, *_window(page.window), f"{this} tokens"]
    if page.format == "index" and page.full_tokens:
        facts.append(f"{page.full_tokens} to read all")
    facts += [
        f"{name}: {_as_line(value)}" for name, value in page.echo.items() if _adds_something(value)
    ]
    return " · ".join(facts)


def _folded(count: int) -> list[str]:
    return [f"{count} alike share a row"] if count else []


def _adds_something(value: Any) -> bool:
    """Whether an echo adds anything to the rows: an anchor that is a record is one of them."""
    return bool(value) and not (isinstance(value, Mapping) and "ref" in value)


def _window(window: Mapping[str, Any] | None) -> list[str]:
    if not window:
        return []
    if window["days"] == "all":
        return ["all days"]
    counts = (window["older_matches"], "older"), (window.get("future_matches"), "in the future")
    return [f"{window['days']} days", *(f"{count} {when}" for count, when in counts if count)]


def _notes(page: Page) -> list[str]:
    notes = {name: v for name, v in page.notes.items() if v and name not in ("before", "after")}
    return [f"{name}: {_as_line(value)}" for name, value in notes.items()]


def _row(row: Row, form: str) -> list[str]:
    if row["kind"] == "work_session":
        return _work_session(row, form)
    lines = _full(row) if form == "full" else [_table_row(row)]
    if "explain" in row:
        lines.append(f"  {one_line(row['explain']['line'])}")
    if "timeline" in row:
        lines.append(f"  {row['timeline']}")
    return lines


def _table_row(row: Row) -> str:
    when = local_text(row["created_at_epoch"]) + (" older" if row.get("older") else "")
    anchor = " <- anchor" if row.get("anchor") else ""
    label, title, cost = cell(_label(row)), cell(row["title"]), row.get("read_tokens", "")
    return f"| {_shown_ref(row)}{anchor} | {when} | {label} | {title}{_alike(row)} | {cost} |"


def _alike(row: Row) -> str:
    """The other matches that a row stands for."""
    twins = row.get("twins", ())
    refs = (ref if row["kind"] != "observation" else f"#{ref}" for ref in twins)
    return f" +{len(twins)} alike: {' '.join(refs)}" if twins else ""


def _match(number: int, row: Row) -> str:
    """A row of the list; a stub row has neither similarity nor cost."""
    near = f"{row['similarity']:.0%}" if "similarity" in row else ""
    cost = f"({row['read_tokens']} tokens)" if "read_tokens" in row else ""
    when, title = local_day(row["created_at_epoch"]), row["title"]
    label = name_of(_label(row))
    return one_line(f"{number}. {near} {when} {_shown_ref(row)} {label} {title} {cost}")


def _shown_ref(row: Row) -> str:
    return f"#{row['ref']}" if row["kind"] == "observation" else str(row["ref"])


def _label(row: Row) -> str:
    return str(row.get("type") or row["kind"])


def _work_session(row: Row, form: str) -> list[str]:
    counts = ", ".join(f"{count} {name}" for name, count in row["counts"].items() if count)
    status = [] if row["status"] == "unknown" else [name_of(row["status"])]
    names = name_of(row["session_id"]), name_of(row["project"])
    head = f"## {' · '.join([*names, local_text(row['last_at_epoch']), *status, counts])}"
    children = [child for name in ("sessions", "observations", "prompts") for child in row[name]]
    return [head, *(line for child in children for line in _row(child, form))]


_OWN_LINE = {"id", "ref", "kind", "type", "title", "request", "created_at", "created_at_epoch"}


def _full(row: Row) -> list[str]:
    """A full record: a heading, then each field that is not empty, with its lines quoted."""
    title = row.get("title") or row.get("request") or ""
    anchor = " <- anchor" if row.get("anchor") else ""
    when, label = local_text(row["created_at_epoch"]), name_of(_label(row))
    heading = one_line(f"### {_shown_ref(row)}{anchor} {label} {when} {title}")
    fields = [name for name in row if name not in _OWN_LINE | {"explain", "timeline", "anchor"}]
    return [heading, *(line for name in fields for line in _field(name, row[name]))]


def _field(name: str, value: Any) -> list[str]:
    if value in (None, "", [], False) or (name == "discovery_tokens" and not value):
        return []
    if isinstance(value, list):
        items = (field_lines("-", str(item), indent="  ") for item in value)
        return [f"{name}:", *(line for lines in items for line in lines)]
    return field_lines(f"{name}:", str(value))


def _closing(page: Page) -> list[str]:
    """The most likely next step."""
    if page.requested:
        return [f"Unread: memsvc read {','.join(page.unread)}"] if page.unread else []
    if page.next_offset is not None:
        return [f"More: offset={page.next_offset}. {_read_hint(page)}".strip()]
    hint = _read_hint(page)
    return [hint] if hint else []


def _read_hint(page: Page) -> str:
    if page.format == "full":
        return ""
    refs = [row["ref"] for row in page.rows if "ref" in row]
    return f"Read: memsvc read {','.join(refs[:3])}" if refs else ""


def _as_line(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name_of(name)} {_item(item)}" for name, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_item, value))
    return one_line(str(value))


def _item(value: Any) -> str:
    """A value among others on a line."""
    return name_of(value) if isinstance(value, str) else _as_line(value)


def write_record(record: Row) -> str:
    """A full record."""
    return visible("\n".join(_full({"ref": _ref_of(record), **record}))) + "\n"


def _ref_of(record: Row) -> str:
    return str(Ref(Kind(record["kind"]), record["id"]))


def write_document(document: Mapping[str, Any]) -> str:
    """Any other answer as indented lines, one fact per line."""
    return f"{visible(_document_lines(document))}\n"


def _document_lines(document: Mapping[str, Any], level: int = 0) -> str:
    indent = "  " * level
    lines = []
    for name, value in document.items():
        label = f"{indent}{name_of(name)}:"
        if isinstance(value, Mapping):
            lines += [label, _document_lines(value, level + 1)]
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            lines += [label, *(f"{indent}- {_as_line(item)}" for item in value)]
        else:
            lines.append(f"{label} {_as_line(value)}")
    return "\n".join(line for line in lines if line)
