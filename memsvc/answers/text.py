"""Answers as compact text that loses nothing, for agents and for people at a terminal."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from memsvc.answers.budget import CLIPPED
from memsvc.answers.page import Page, Row, cost_as_text, with_own_cost
from memsvc.answers.quoting import cell, field_lines, name_of, one_line, visible
from memsvc.core.dates import local_day, local_text
from memsvc.core.records import SHAPES, Kind, Ref

WHOLE: Final = "whole"
"""In a row instead of the cost of reading: the title has all the words of the record."""

_WORDS: Final = ("query", "also")

_COMMIT = re.compile(r"\b([0-9a-f]{10})[0-9a-f]{30}\b")
_MAY_NAME_COMMITS = {"source_id", *(name for shape in SHAPES.values() for name in shape.texts)}


def write_text(page: Page) -> str:
    """A page as text: a header, one table row per record (or the full record), and a next step."""
    return _page_text(page, [line for row in _rows(page) for line in _row(row, page.format)])


def write_matches(page: Page) -> str:
    """A page as a numbered list, best first, with the similarity of each row."""
    if page.format == "full":
        return write_text(page)
    return _page_text(page, [_match(number, row) for number, row in enumerate(page.rows, 1)])


def _page_text(page: Page, rows: list[str]) -> str:
    lines = visible("\n".join([*rows, *_notes(page), *_closing(page)]))
    if _is_one_record(page):
        return f"{lines}\n"
    return with_own_cost(lambda this: f"{_header(page, this)}\n{lines}".rstrip("\n") + "\n")


def _is_one_record(page: Page) -> bool:
    """Whether a page is one record requested by its ref, which needs no header."""
    return len(page.rows) == len(page.requested) == 1 and not _notes(page)


def _header(page: Page, this: int) -> str:
    shown = f"{len(page.rows)} of {page.total}"
    if page.offset:
        shown = f"{page.offset + 1}-{page.offset + len(page.rows)} of {page.total}"
    facts = [shown, page.strategy, *_window(page), f"{this} tokens"]
    facts += [
        f"{name}: {_as_line(value)}"
        for name, value in page.echo.items()
        if _adds_something(name, value)
    ]
    return " · ".join(facts)


def _adds_something(name: str, value: Any) -> bool:
    """Whether an echo adds anything: who asked knows the words, and an anchor may be a row."""
    return (
        bool(value) and name not in _WORDS and not (isinstance(value, Mapping) and "ref" in value)
    )


def _window(page: Page) -> list[str]:
    """The window of a page, and how many matches lie outside it.

    If all rows of the page do, this is where it is said.
    """
    window = page.window
    if not window:
        return []
    if window["days"] == "all":
        return ["all days"]
    only = page.rows and all(map(_is_older, page.rows)) and window["older_matches"] < page.total
    counts = (
        (window["older_matches"], "older, all of these" if only else "older"),
        (window.get("future_matches"), "in the future"),
    )
    return [f"{window['days']} days", *(f"{count} {when}" for count, when in counts if count)]


def _is_older(row: Row) -> bool:
    return bool(row.get("older"))


def _rows(page: Page) -> list[Row]:
    """The rows of a page; those older than the window are marked only if others are not."""
    alike = len(set(map(_is_older, page.rows))) == 1
    return [{**row, "older": False} for row in page.rows] if alike else list(page.rows)


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
    when = local_text(row["created_at_epoch"]) + (" older" if _is_older(row) else "")
    anchor = " <- anchor" if row.get("anchor") else ""
    label, cost = cell(_label(row)), _cost(row)
    title = cell(_brief(f"{_project(row)} {row['title']}"))
    return f"| {_shown_ref(row)}{anchor} | {when} | {label} | {title}{_alike(row)} | {cost} |"


def _alike(row: Row) -> str:
    """The other matches that a row stands for."""
    twins = row.get("twins", ())
    refs = (ref if row["kind"] != "observation" else f"#{ref}" for ref in twins)
    return f" +{len(twins)} alike: {' '.join(refs)}" if twins else ""


def _match(number: int, row: Row) -> str:
    """A row of the list; a stub row has neither similarity nor cost."""
    near = f"{row['similarity']:.0%}" if "similarity" in row else ""
    cost = f"({_cost(row)} tokens)".replace(f"{WHOLE} tokens", WHOLE) if _cost(row) else ""
    when, title = local_day(row["created_at_epoch"]), _brief(row["title"])
    label = name_of(_label(row))
    facts = f"{number}. {near} {when} {_shown_ref(row)} {label} {_project(row)}"
    return one_line(f"{facts} {title} {cost}")


def _project(row: Row) -> str:
    """The project of a row among rows of several, to stand before its title."""
    return f"{name_of(row['project'])}:" if row.get("project") else ""


def _cost(row: Row) -> str:
    """What a row says about reading its record: the cost, or that there is nothing more to read.

    Rows of text show no subtitle.
    """
    whole = row.get("whole") and "subtitle" not in row
    return WHOLE if whole else str(cost_as_text(row) or "")


def _brief(text: str) -> str:
    """A text with commit hashes cut to 10 digits, which name them as well."""
    return _COMMIT.sub(r"\1", text)


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


_NO_FIELDS = {
    *("id", "ref", "kind", "type", "title", "request", "created_at", "created_at_epoch"),
    *("explain", "timeline", "anchor", "read_tokens"),
}
"""What the heading says or its own lines say, and what reading cost, which is known by then."""


def _full(row: Row) -> list[str]:
    """A full record: a heading, then each field that is not empty, with its lines quoted."""
    title = row.get("title") or row.get("request") or ""
    anchor = " <- anchor" if row.get("anchor") else ""
    when, label = local_text(row["created_at_epoch"]), name_of(_label(row))
    heading = one_line(f"### {_shown_ref(row)}{anchor} {label} {when} {_brief(title)}")
    fields = [name for name in row if name not in _NO_FIELDS and not _is_repeated(name, row)]
    return [heading, *(line for name in fields for line in _field(name, row[name]))]


def _is_repeated(name: str, row: Row) -> bool:
    """Whether a field is a subtitle of one line with which the narrative begins."""
    if name != "subtitle" or len(row[name].splitlines()) > 1:
        return False
    beginning, narrative = (one_line(row.get(each, "")) for each in (name, "narrative"))
    return narrative.startswith(beginning.removesuffix(CLIPPED).removesuffix("…"))


def _field(name: str, value: Any) -> list[str]:
    if value in (None, "", [], False) or (name == "discovery_tokens" and not value):
        return []
    if name in _MAY_NAME_COMMITS:
        value = _brief(value) if isinstance(value, str) else [_brief(item) for item in value]
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
    listed = [row for row in page.rows if "ref" in row]
    refs = [row["ref"] for row in [row for row in listed if _cost(row) != WHOLE] or listed]
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
