"""The commands that query the worker, generated from the table of operations."""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click
import requests

from memsvc.api.operation import Operation
from memsvc.api.operations import OPERATIONS
from memsvc.api.parameter_facts import Parameter, facts_of, parameters_of
from memsvc.configuration.settings import load_settings
from memsvc.core.errors import BadRequest, MemsvcError, NotFound, StoreUnavailable
from memsvc.entrypoints.client import answer_text, ask_worker, problem_text
from memsvc.entrypoints.place import with_folder, working_folder
from memsvc.schemas import parameters

FAILED, USAGE_ERROR, NO_WORKER, NOT_FOUND = 1, 2, 3, 4
"""Exit codes besides 0: failure, invalid arguments, no worker running, no such record."""

EXIT_CODES = (
    f"Exit codes: 0 success, {FAILED} failure, {USAGE_ERROR} invalid arguments, "
    f"{NO_WORKER} no worker running, {NOT_FOUND} no such record."
)


class Commands(click.Group):
    """A group of commands with a default operation for words that are not a command.

    `memsvc search "auth token"` searches everything, `memsvc search prompts why` only prompts.
    Without words the default operation runs if it needs none, as in `memsvc context`.
    """

    default_command: click.Command | None = None

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command; an error is one sentence on standard error and an exit code."""
        try:
            return super().main(*args, **options)
        except MemsvcError as error:
            click.echo(f"memsvc: {error.detail}", err=True)
            sys.exit(_exit_code(error))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if (
            self.default_command is None
            or args[:1] == ["--help"]
            or (args and args[0] in self.commands)
        ):
            return super().parse_args(ctx, args)
        if not args and any(
            isinstance(each, click.Argument) for each in self.default_command.params
        ):
            return super().parse_args(ctx, args)
        ctx._protected_args, ctx.args = [""], args
        return args

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options of the default operation besides those of the group."""
        records = [
            each.get_help_record(ctx)
            for each in (self.default_command.params if self.default_command else ())
        ]
        if options := [record for record in records if record]:
            with formatter.section(f"Options of {self.name} itself"):
                formatter.write_dl(options)
        super().format_options(ctx, formatter)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "":
            return self.default_command
        return super().get_command(ctx, cmd_name)


def _exit_code(error: MemsvcError) -> int:
    if isinstance(error, BadRequest):
        return USAGE_ERROR
    return NOT_FOUND if isinstance(error, NotFound) else FAILED


def ask(
    method: str,
    path: str,
    pairs: list[tuple[str, str]],
    accept: str,
    body: Mapping[str, Any] | None = None,
) -> requests.Response:
    """The worker's answer; without a worker, exit with a sentence on standard error."""
    with _worker_needed():
        return ask_worker(load_settings(), method, path, pairs, accept=accept, body=body)


@contextlib.contextmanager
def _worker_needed() -> Iterator[None]:
    """Without a worker, exit with a sentence on standard error."""
    try:
        yield
    except StoreUnavailable as error:
        click.echo(f"memsvc: {error.detail}", err=True)
        sys.exit(NO_WORKER)


def print_answer(response: requests.Response) -> None:
    """Print an answer; print a problem on standard error and exit with its code."""
    if response.ok:
        text = answer_text(response)
        click.echo(text, nl=not text.endswith("\n"))
        return
    click.echo(f"memsvc: {problem_text(response)}", err=True)
    sys.exit({400: USAGE_ERROR, 404: NOT_FOUND}.get(response.status_code, FAILED))


# -- one command per operation --------------------------------------------------------------------


def _operation_command(operation: Operation, name: str) -> click.Command:
    """The command for an operation, with the same parameters."""

    def call(as_json: bool, all_projects: bool = False, **values: Any) -> None:
        path, pairs = operation.path, _pairs(names, values)
        if operation.by_folder:
            pairs = _within_folder(pairs, all_projects)
        for pair in [pair for pair in pairs if f"<{pair[0]}>" in path]:
            path = path.replace(f"<{pair[0]}>", pair[1])
            pairs.remove(pair)
        accept = "application/json" if as_json else "text/markdown"
        if operation.body:
            print_answer(ask(operation.method, path, [], accept, _body(pairs)))
        else:
            print_answer(ask(operation.method, path, pairs, accept))

    found = parameters_of(operation.schema.fields)
    hidden = {*parameters.rendering(), *([parameters.FOLDER] if operation.by_folder else [])}
    taken = [each for each in found if each.name not in hidden]
    names = {_identifier(each.name): each.name for each in taken}
    json_option = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")
    options = [_click_parameter(operation, each) for each in taken]
    if operation.by_folder:
        options.append(click.Option(["--all-projects"], is_flag=True, help="Search all projects."))
    summary = f"{operation.summary} Use it {operation.when}."
    return click.Command(
        name,
        callback=call,
        params=[*options, json_option],
        help=summary,
        short_help=operation.summary,
    )


def _within_folder(pairs: list[tuple[str, str]], all_projects: bool) -> list[tuple[str, str]]:
    """The parameters with all projects or, unless they name one, that of the working directory."""
    if all_projects:
        return [*pairs, ("project", parameters.ALL_PROJECTS)]
    with _worker_needed():
        return with_folder(load_settings(), pairs, working_folder())


def _body(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """The parameters as a JSON object; one that is repeated has a list."""
    return {name: [v for n, v in pairs if n == name] for name, _ in pairs}


def _identifier(name: str) -> str:
    return f"given_{name.lower()}"


def _pairs(names: dict[str, str], values: dict[str, Any]) -> list[tuple[str, str]]:
    pairs = []
    for identifier, value in values.items():
        given = value if isinstance(value, tuple) else (value,)
        pairs += [(names[identifier], str(item)) for item in given if item is not None]
    return pairs


def _click_parameter(operation: Operation, parameter: Parameter) -> click.Parameter:
    if parameter.name == operation.argument:
        return _argument(operation, parameter)
    facts = parameter.as_json() | {"type": "", "required": False}
    flags = [f"--{parameter.name}", f"--{parameter.name.replace('_', '-')}"]
    flags += [f"--{name}" for name in parameters.spellings_of(parameter.name) if name.isalpha()]
    switch: dict[str, Any] = {"is_flag": False, "flag_value": "1"} if _is_switch(parameter) else {}
    return click.Option(
        [*dict.fromkeys(flags), _identifier(parameter.name)],
        **switch,
        multiple=parameter.type == "list",
        help="; ".join([parameter.description, *facts_of(facts)]),
        metavar=parameter.type.upper(),
    )


def _is_switch(parameter: Parameter) -> bool:
    """Whether an option alone means 1."""
    return parameter.allowed == ("0", "1")


def _argument(operation: Operation, parameter: Parameter) -> click.Argument:
    name, in_path = parameter.name, f"<{parameter.name}>" in operation.path
    required = parameter.required or in_path
    if parameter.type == "text":
        return WordsArgument([_identifier(name)], metavar=name.upper(), required=required, nargs=-1)
    many = -1 if parameter.type == "list" else 1
    return click.Argument([_identifier(name)], metavar=name, required=required, nargs=many)


GROUPS = {
    "show": "Read one full record.",
    "forget": "Forget one record permanently, or all that match.",
}
"""Help for command groups that are not operations themselves."""


class WordsArgument(click.Argument):
    """The words of a query, quoted or not, joined into one text."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        words = super().process_value(ctx, value)
        return " ".join(words) if words else None


def _group(root: Commands, path: tuple[str, ...]) -> Commands:
    """The command group for these words, created if it is missing."""
    group: Any = root
    for word in path:
        if word not in group.commands:
            group.add_command(Commands(word, help=GROUPS.get(word, "")))
        group = group.commands[word]
    return group  # type: ignore[no-any-return]


def add_operations(root: Commands) -> None:
    """Add a command for every operation that has one."""
    commands = {tuple(o.command.split()): o for o in OPERATIONS if o.command}
    groups = {words[:-1] for words in commands if len(words) > 1}
    for words, operation in commands.items():
        command = _operation_command(operation, words[-1])
        if words in groups:
            group = _group(root, words)
            command.name = ""  # its usage line is the group's
            group.default_command = command
            group.help = f"{operation.summary} Use it {operation.when}."
            group.short_help = operation.summary
        else:
            _group(root, words[:-1]).add_command(command)
