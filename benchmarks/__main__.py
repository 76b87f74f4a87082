"""`python -m benchmarks`: quality, ablation, speed, hostile queries, tokens, savings, and more."""

import signal
import sys
from pathlib import Path

import click

from benchmarks import ablation as leaving_out
from benchmarks import durability as surviving
from benchmarks import hostile as hostile_queries
from benchmarks import quality as evaluation
from benchmarks import savings as saving
from benchmarks import session_start as starting
from benchmarks import speed as timing
from benchmarks import tokens as budgets
from memsvc.configuration.settings import SEMANTIC

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


keep = click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the stores, to use them and their vectors again.",
)
semantic = click.option(
    "--semantic",
    type=click.Choice(SEMANTIC),
    default="chroma",
    show_default=True,
    help="The index.",
)


@click.group()
def benchmarks() -> None:
    """Measure memsvc, all but ablation over HTTP, on data you name.

    A folder alone means quality, a file alone means speed. Each starts a worker over a store of its
    own. Exit code 1: something that must hold did not.
    """


@benchmarks.command(short_help="Is the right memory found?")
@click.argument("folder", type=FOLDER)
@click.option("--set", "names", multiple=True, help="Only this set; may be repeated.")
@click.option("--compressed", is_flag=True, help="Bring dates forward; compare with days=all.")
@click.option("--project-filter", is_flag=True, help="Also ask each query within its project.")
@click.option("--floors", type=FILE, help="JSON: set name to metric to the least allowed.")
@keep
@semantic
@as_json
def quality(
    folder: Path,
    names: tuple[str, ...],
    compressed: bool,
    project_filter: bool,
    floors: Path | None,
    keep: Path | None,
    semantic: str,
    as_json: bool,
) -> None:
    """Is the right memory found? FOLDER holds evaluation sets, one a folder."""
    sys.exit(
        evaluation.measure_quality(
            folder,
            names,
            compressed=compressed,
            project_filter=project_filter,
            floors=floors,
            place=evaluation.Place(keep, semantic),
            as_json=as_json,
        )
    )


@benchmarks.command(short_help="What does each part of the ranking add?")
@click.argument("folder", type=FOLDER)
@click.option("--set", "names", multiple=True, help="Only this set; may be repeated.")
@click.option("--project-filter", is_flag=True, help="Ask locomo_* within each query's project.")
@keep
@as_json
def ablation(
    folder: Path, names: tuple[str, ...], project_filter: bool, keep: Path | None, as_json: bool
) -> None:
    """What does each part of the ranking add? FOLDER holds evaluation sets, one a folder.

    Ranks without HTTP. MEMSVC_CHROMA_URL, if set, adds a row for a Chroma server.
    """
    sys.exit(
        leaving_out.measure_ablation(
            folder, names, project_filter=project_filter, keep=keep, as_json=as_json
        )
    )


@benchmarks.command(short_help="How fast are import, start and every route?")
@click.argument("corpus", type=FILE)
@click.option("--seconds", default=3.0, show_default=True, help="At most, for each route.")
@click.option("--clients", default=timing.CLIENTS, show_default=True, help="Clients at once.")
@click.option("--interrupt", is_flag=True, help="Break an import off half way and resume it.")
@as_json
def speed(corpus: Path, seconds: float, clients: int, interrupt: bool, as_json: bool) -> None:
    """How fast are import, start and every route? CORPUS is JSON Lines, plain or .gz."""
    sys.exit(
        timing.measure_speed(
            corpus, seconds=seconds, interrupt=interrupt, clients=clients, as_json=as_json
        )
    )


@benchmarks.command(short_help="Does any text break the worker?")
@click.argument("corpus", type=FILE)
@click.option("--count", default=100_000, show_default=True, help="Queries for each route.")
@click.option("--words", default=1000, show_default=True, help="Words of titles to look for.")
@click.option("--seed", default=1, show_default=True, help="Another seed, other queries.")
@as_json
def hostile(corpus: Path, count: int, words: int, seed: int, as_json: bool) -> None:
    """Does any text break the worker, and does each word of a title find its record?

    CORPUS is JSON Lines, plain or .gz. With the default count, two cores take about 20 minutes for
    10,000 records and half an hour for 100,000.
    """
    sys.exit(
        hostile_queries.measure_hostile(
            corpus, count=count, words=words, seed=seed, as_json=as_json
        )
    )


@benchmarks.command(short_help="What do rows cost, and are budgets kept?")
@click.argument("corpus", type=FILE)
@click.option("--count", default=1000, show_default=True, help="Random queries for budgets.")
@click.option("--tokenizer", type=FILE, help="A tokenizer.json to hold the estimator against.")
@as_json
def tokens(corpus: Path, count: int, tokenizer: Path | None, as_json: bool) -> None:
    """What do rows cost, and is max_tokens ever exceeded? CORPUS is JSON Lines, plain or .gz."""
    sys.exit(budgets.measure_tokens(corpus, count=count, tokenizer=tokenizer, as_json=as_json))


@benchmarks.command(short_help="What do rows save against records in full?")
@as_json
def savings(as_json: bool) -> None:
    """What do rows save against records in full? Over the bundled sample and the skill's tasks."""
    sys.exit(saving.measure_savings(as_json=as_json))


@benchmarks.command("session-start", short_help="What does a session wait for?")
@click.argument("corpus", type=FILE)
@as_json
def session_start(corpus: Path, as_json: bool) -> None:
    """How soon are start page, hook and MCP server there? CORPUS is JSON Lines, plain or .gz.

    The hook is run with a worker up, down, hanging, over a locked store and over 10 MB of memories.
    """
    sys.exit(starting.measure_start(corpus, as_json=as_json))


@benchmarks.command(short_help="Is nothing lost when it is killed or damaged?")
@click.argument("corpus", type=FILE)
@click.option("--kills", default=20, show_default=True, help="Times the worker is killed.")
@click.option("--records", default=1500, show_default=True, help="Records written meanwhile.")
@click.option("--seed", default=1, show_default=True, help="Another seed, other moments.")
@as_json
def durability(corpus: Path, kills: int, records: int, seed: int, as_json: bool) -> None:
    """Is nothing lost when the worker is killed while it embeds, or its index damaged?

    CORPUS is JSON Lines, plain or .gz. Also: nothing is left behind, nothing written elsewhere.
    """
    sys.exit(
        surviving.measure_durability(
            corpus, kills=kills, records=records, seed=seed, as_json=as_json
        )
    )


def _with_command(arguments: list[str]) -> list[str]:
    """A path without a command gets the one that fits it; nothing at all asks for help."""
    if not arguments:
        return ["--help"]
    path = Path(arguments[0])
    if arguments[0] in benchmarks.commands or not path.exists():
        return arguments
    return ["quality" if path.is_dir() else "speed", *arguments]


if __name__ == "__main__":
    # ended from outside, a measurement still ends its worker and removes its store
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    benchmarks(_with_command(sys.argv[1:]), prog_name="python -m benchmarks")
