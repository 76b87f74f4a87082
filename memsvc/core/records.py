"""The three kinds of record, and how each is stored and named."""

import hashlib
import json
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """The kind of a record. The value is the word used in answers and parameters."""

    OBSERVATION = "observation"
    SESSION = "session"
    PROMPT = "prompt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The fields that all records have. `id` is 0 until the store assigns one. Times are ms since
    1970, UTC; 0 means not given, and the store then uses the time of the first write.
    """

    id: int = 0
    project: str = ""
    session_id: str = ""
    created_at_epoch: int = 0
    source: str = ""
    source_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation(Record):
    """Something that an agent noticed, decided or did. `author` is who wrote a commit."""

    type: str = "discovery"
    title: str = ""
    subtitle: str = ""
    narrative: str = ""
    facts: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    prompt_number: int | None = None
    discovery_tokens: int = 0
    author: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary(Record):
    """The outcome of a work session: the kind called `session`."""

    request: str = ""
    investigated: str = ""
    learned: str = ""
    completed: str = ""
    next_steps: str = ""
    notes: str = ""
    files_read: tuple[str, ...] = ()
    files_edited: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt(Record):
    """What the user asked for, verbatim."""

    prompt_text: str = ""
    prompt_number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSession:
    """A work session groups records of the three kinds.

    `last_at_epoch` is the last moment of work if known (ms), otherwise 0: the store then takes it
    from the records.
    """

    session_id: str
    project: str = ""
    started_at_epoch: int = 0
    completed_at_epoch: int | None = None
    status: str = "active"
    last_at_epoch: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """How a kind is stored: its class, its table, the prefix letter of its refs, its text and file
    fields.

    The first of `texts` is the title that lists show.
    """

    record: type[Record]
    table: str
    letter: str
    texts: tuple[str, ...]
    files: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return self.texts[0]


SHAPES: Final[dict[Kind, Shape]] = {
    Kind.OBSERVATION: Shape(
        Observation,
        "observations",
        "",
        ("title", "subtitle", "narrative", "facts"),
        ("files_read", "files_modified"),
    ),
    Kind.SESSION: Shape(
        Summary,
        "sessions",
        "S",
        ("request", "investigated", "learned", "completed", "next_steps", "notes"),
        ("files_read", "files_edited"),
    ),
    Kind.PROMPT: Shape(Prompt, "prompts", "P", ("prompt_text",)),
}

TYPES: Final = ("bugfix", "feature", "refactor", "change", "discovery", "decision")

CONCEPTS: Final = (
    "how-it-works",
    "why-it-exists",
    "what-changed",
    "problem-solution",
    "gotcha",
    "pattern",
    "trade-off",
)


def kind_of(record: Record) -> Kind:
    """The kind of a record."""
    return next(kind for kind, shape in SHAPES.items() if shape.record is type(record))


def author_of(record: Record) -> str:
    """Who wrote what a record stands for; empty if unknown."""
    return record.author if isinstance(record, Observation) else ""


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """The short name of a record: `123`, `S12`, `P9`."""

    kind: Kind
    id: int

    def __str__(self) -> str:
        return f"{SHAPES[self.kind].letter}{self.id}"


def parse_ref(text: str) -> Ref | None:
    """Parse `123`, `#123`, `S12` or `P9`; None if the text is no ref."""
    body = text.strip().removeprefix("#").upper()
    kind = {"S": Kind.SESSION, "P": Kind.PROMPT}.get(body[:1], Kind.OBSERVATION)
    digits = body if kind is Kind.OBSERVATION else body[1:]
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        return None
    return Ref(kind, int(digits))


_NOT_CONTENT: Final = frozenset(
    {"id", "source", "source_id", "created_at_epoch", "prompt_number", "discovery_tokens", "author"}
)


def content_hash(record: Record) -> int:
    """A 63-bit hash of a record's content, without its id, source and time."""
    names = (field.name for field in fields(record))
    content = {name: getattr(record, name) for name in names if name not in _NOT_CONTENT}
    text = json.dumps(content, sort_keys=True)
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def work_hash(project: str, session_id: str) -> str:
    """A hash that identifies a forgotten work session without revealing it."""
    named = f"{project.casefold()}\n{session_id}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(named, digest_size=16).hexdigest()


def content_source_id(record: Record, *, dated: bool = True) -> str:
    """The source id of a record that was given none: from its content and, if given, its date.

    The same record sent twice is then stored once, and "go on" sent on two days is stored twice.
    """
    when = f"-{record.created_at_epoch}" if record.created_at_epoch and dated else ""
    return f"content-{content_hash(record):016x}{when}"
