"""What an operation is: how it is read, run, answered, called and explained."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from marshmallow import Schema

from memsvc.answers.page import Page
from memsvc.answers.text import write_document, write_record, write_text
from memsvc.api.requests import Call
from memsvc.application.services import Services
from memsvc.core.records import Kind
from memsvc.schemas import parameters
from memsvc.schemas.parameters import Fields
from memsvc.schemas.results import Result

Answer = Page | dict[str, Any]

ROW_COST: Final = (
    "about 30 tokens per row as text, 110 as JSON; a full record costs its read_tokens"
)

TEXTS: Final[Mapping[Result, Callable[[Any], str]]] = {
    Result.PAGE: write_text,
    Result.RECORD: write_record,
    Result.DOCUMENT: write_document,
    Result.WRITTEN: write_document,
}
"""How an answer of each shape is rendered as text."""


@dataclass(frozen=True, slots=True)
class Tool:
    """An operation as an MCP tool: its name, and its role among the others."""

    name: str
    role: str


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation that a client can call.

    What it does: `read` turns a call into a request, `run` answers it; `result` is the shape of the
    answer, `status` its HTTP status, `html` its template; `text` renders it as text, if not like
    every answer of its shape; `text_first` means text unless the client asks for JSON; `ceiling`
    caps the tokens of an answer, whatever max_tokens says.

    How it is called: `command` has the words of the command line, `argument` is the parameter that
    needs no flag there; `tool` is its MCP tool; `body` says what a request body has: nothing, the
    parameters, or records of these `kinds`; `skill` means that the skill has a page for it.

    How it is explained: `example` has the parameters of a request that runs as printed, `refs` is
    the one of them that names records, `sample` is a body that can be sent as it is.
    """

    name: str
    path: str
    summary: str
    when: str
    run: Callable[[Services, Any], Answer]
    read: Callable[[Call], Any] = lambda call: None
    parameters: Fields = field(default_factory=dict)
    kinds: tuple[Kind, ...] = ()
    command: str = ""
    argument: str = ""
    method: str = "GET"
    aliases: tuple[str, ...] = ()
    body: str = ""
    result: Result = Result.PAGE
    status: Callable[[Answer], int] = lambda answer: 200
    text: Callable[[Any], str] | None = None
    text_first: bool = False
    html: str = ""
    ceiling: int | None = None
    tool: Tool | None = None
    skill: bool = False
    example: Mapping[str, str] = field(default_factory=dict)
    refs: str = ""
    sample: str = ""
    cost: str = ROW_COST
    errors: tuple[str, ...] = ("bad_parameter",)

    @property
    def write(self) -> Callable[[Any], str]:
        """The function that renders an answer as text."""
        return self.text or TEXTS[self.result]

    @property
    def by_folder(self) -> bool:
        """Whether commands and tools search the project of their folder unless one is given."""
        is_search = self.method == "GET" and self.result is Result.PAGE and not self.refs
        return is_search and "project" in self.parameters

    @cached_property
    def schema(self) -> Schema:
        """The schema of its parameters; GET also takes `render`, searches also `folder`."""
        folder = parameters.of_folder() if self.by_folder else {}
        rendering = parameters.rendering() if self.method == "GET" else {}
        return parameters.make_schema(
            f"{self.name}-{self.method}", {**self.parameters, **folder, **rendering}
        )
