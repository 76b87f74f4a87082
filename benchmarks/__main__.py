"""`python -m benchmarks`: quality, ablation, speed, hostile queries, tokens, savings, and more."""

import signal
import sys
from pathlib import Path

import click

from benchmarks import ablation as leaving_out
from benchmarks import crowd as crowding
from benchmarks import durability as surviving
from benchmarks import endurance as enduring
from benchmarks import fitting
from benchmarks import hostile as hostile_queries
from benchmarks import quality as evaluation
from benchmarks import savings as saving
from benchmarks import session_start as starting
from benchmarks import slowest as slow
from benchmarks import speed as timing
from benchmarks import tokens as budgets
from memsvc.configuration.settings import SEMANTIC

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


keep = click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to keep the stores and their vectors in, for the next run.",
)
semantic = click.option(
    "--semantic",
    type=click.Choice(SEMANTIC),
    default="chroma",
    show_default=True,
    help="The semantic index.",
)


@click.group()
def benchmarks() -> None:
    """Measure memsvc on your data, over HTTP except for ablation.

    A folder alone means quality, a file alone means speed. Each benchmark starts a worker with its
    own store. Exit code 1 means that something that must hold did not.
    """


@benchmarks.command(short_help="Is the right record found?")
@click.argument("folder", type=FOLDER)
@click.option("--set", "names", multiple=True, help="Only this set; can be repeated.")
@click.option("--compressed", is_flag=True, help="Move dates forward; compare with days=all.")
@click.option("--project-filter", is_flag=True, help="Also run each query within its project.")
@click.option(
    "--also",
    type=FOLDER,
    help="Folder of SET.jsonl with other wordings: only those questions, without and with them.",
)
@click.option("--floors", type=FILE, help="JSON: the lowest value allowed, per set and metric.")
@keep
@semantic
@as_json
def quality(
    folder: Path,
    names: tuple[str, ...],
    compressed: bool,
    project_filter: bool,
    also: Path | None,
    floors: Path | None,
    keep: Path | None,
    semantic: str,
    as_json: bool,
) -> None:
    """Is the right record found? FOLDER holds evaluation sets, one per folder."""
    sys.exit(
        evaluation.measure_quality(
            folder,
            names,
            compressed=compressed,
            project_filter=project_filter,
            also=also,
            floors=floors,
            place=evaluation.Place(keep, semantic),
            as_json=as_json,
        )
    )


@benchmarks.command(short_help="What does each feature of the ranking add?")
@click.argument("folder", type=FOLDER)
@click.option("--set", "names", multiple=True, help="Only this set; can be repeated.")
@click.option("--project-filter", is_flag=True, help="Run locomo_* within each query's project.")
@keep
@as_json
def ablation(
    folder: Path, names: tuple[str, ...], project_filter: bool, keep: Path | None, as_json: bool
) -> None:
    """What does each feature of the ranking add? FOLDER holds evaluation sets, one per folder.

    Does not use HTTP. If MEMSVC_CHROMA_URL is set, there is a row for the Chroma server.
    """
    sys.exit(
        leaving_out.measure_ablation(
            folder, names, project_filter=project_filter, keep=keep, as_json=as_json
        )
    )


@benchmarks.command(short_help="How much should full text say about a query?")
@click.argument("folder", type=FOLDER)
@click.option("--set", "names", multiple=True, help="Only this set; can be repeated.")
@keep
@as_json
def fit(folder: Path, names: tuple[str, ...], keep: Path | None, as_json: bool) -> None:
    """How much should full text say about a query? FOLDER holds evaluation sets, one per folder.

    Fits the coefficients of the fusion, and fits them again without each set. Does not use HTTP.
    """
    sys.exit(fitting.measure_fit(folder, names, keep=keep, as_json=as_json))


@benchmarks.command(short_help="How fast are import, start and every route?")
@click.argument("corpus", type=FILE)
@click.option("--seconds", default=3.0, show_default=True, help="Maximum seconds per route.")
@click.option("--clients", default=timing.CLIENTS, show_default=True, help="Simultaneous clients.")
@click.option("--interrupt", is_flag=True, help="Interrupt an import halfway and resume it.")
@as_json
def speed(corpus: Path, seconds: float, clients: int, interrupt: bool, as_json: bool) -> None:
    """How fast are import, start and every route? CORPUS is JSON Lines, plain or .gz."""
    sys.exit(
        timing.measure_speed(
            corpus, seconds=seconds, interrupt=interrupt, clients=clients, as_json=as_json
        )
    )


@benchmarks.command(short_help="Can any text break the worker?")
@click.argument("corpus", type=FILE)
@click.option("--count", default=100_000, show_default=True, help="Queries per route.")
@click.option("--words", default=1000, show_default=True, help="Words from titles to search for.")
@click.option("--seed", default=1, show_default=True, help="Seed of the random queries.")
@as_json
def hostile(corpus: Path, count: int, words: int, seed: int, as_json: bool) -> None:
    """Can any text break the worker, and does each word of a title find its record?

    CORPUS is JSON Lines, plain or .gz. With the default count and two cores it takes about 20
    minutes for 10,000 records and half an hour for 100,000.
    """
    sys.exit(
        hostile_queries.measure_hostile(
            corpus, count=count, words=words, seed=seed, as_json=as_json
        )
    )


@benchmarks.command(short_help="What do rows cost, and are token budgets kept?")
@click.argument("corpus", type=FILE)
@click.option("--count", default=1000, show_default=True, help="Random queries to run.")
@click.option("--tokenizer", type=FILE, help="A tokenizer.json to compare the estimator with.")
@as_json
def tokens(corpus: Path, count: int, tokenizer: Path | None, as_json: bool) -> None:
    """What do rows cost, and is max_tokens ever exceeded? CORPUS is JSON Lines, plain or .gz."""
    sys.exit(budgets.measure_tokens(corpus, count=count, tokenizer=tokenizer, as_json=as_json))


@benchmarks.command(short_help="How many tokens do rows save compared with full records?")
@as_json
def savings(as_json: bool) -> None:
    """How many tokens do rows save compared with full records?

    Measured on the bundled sample, with the tasks of the skill's evals.
    """
    sys.exit(saving.measure_savings(as_json=as_json))


@benchmarks.command("session-start", short_help="How long does a session wait at its start?")
@click.argument("corpus", type=FILE)
@as_json
def session_start(corpus: Path, as_json: bool) -> None:
    """How soon do the session-start page, the hook and the MCP server answer?

    CORPUS is JSON Lines, plain or .gz. The hook runs with a worker that is up, down and hanging,
    with a locked store, and with 10 MB of records.
    """
    sys.exit(starting.measure_start(corpus, as_json=as_json))


@benchmarks.command(short_help="Is anything lost when the worker is killed?")
@click.argument("corpus", type=FILE)
@click.option("--kills", default=20, show_default=True, help="Times to kill the worker.")
@click.option("--records", default=1500, show_default=True, help="Records to write meanwhile.")
@click.option("--seed", default=1, show_default=True, help="Seed of the random moments.")
@as_json
def durability(corpus: Path, kills: int, records: int, seed: int, as_json: bool) -> None:
    """Is anything lost when the worker is killed while it embeds, or its index damaged?

    CORPUS is JSON Lines, plain or .gz. It also checks that no process or file is left behind.
    """
    sys.exit(
        surviving.measure_durability(
            corpus, kills=kills, records=records, seed=seed, as_json=as_json
        )
    )


@benchmarks.command(short_help="Is anything lost when the worker is killed under a crowd?")
@click.argument("corpus", type=FILE)
@click.option("--rounds", default=20, show_default=True, help="Times to kill the worker.")
@click.option("--disk", type=FOLDER, help="Folder on a small disk, to be filled in each round.")
@click.option("--seed", default=1, show_default=True, help="Seed of the random moments.")
@as_json
def crowd(corpus: Path, rounds: int, disk: Path | None, seed: int, as_json: bool) -> None:
    """Is anything lost when the worker is killed under 8 writers and 8 readers?

    CORPUS is JSON Lines, plain or .gz. With --disk the disk is full from half of each round on;
    give a disk of its own, such as a tmpfs of 64 MB, because nothing else can write to it then.
    """
    sys.exit(crowding.measure_crowd(corpus, rounds=rounds, disk=disk, seed=seed, as_json=as_json))


@benchmarks.command(short_help="Does the worker take load for hours?")
@click.argument("corpus", type=FILE)
@click.option("--minutes", default=60.0, show_default=True, help="How long.")
@click.option("--seed", default=1, show_default=True, help="Seed of the random requests.")
@keep
@semantic
@as_json
def endurance(
    corpus: Path, minutes: float, seed: int, keep: Path | None, semantic: str, as_json: bool
) -> None:
    """Does the worker take load for hours, with memory, descriptors and health unchanged?

    CORPUS is JSON Lines, plain or .gz. Reads, writes, forgets, and requests refused by design.
    """
    sys.exit(
        enduring.measure_endurance(
            corpus, minutes=minutes, semantic=semantic, keep=keep, seed=seed, as_json=as_json
        )
    )


@benchmarks.command(short_help="Is any question too expensive?")
@click.argument("corpus", type=FILE)
@click.option("--queries", default=10_000, show_default=True, help="Random queries to run.")
@click.option("--seed", default=0, show_default=True, help="Seed of the random queries.")
@click.option("--deadline", default=5.0, show_default=True, help="The worker's deadline, seconds.")
@keep
@as_json
def slowest(
    corpus: Path, queries: int, seed: int, deadline: float, keep: Path | None, as_json: bool
) -> None:
    """Is any question too expensive? A hundred made to be, and random ones; the slowest by name.

    CORPUS is JSON Lines, plain or .gz. Every answer must come within the deadline and half a
    second, and /api/health meanwhile.
    """
    sys.exit(
        slow.measure_slowest(
            corpus, queries=queries, seed=seed, deadline=deadline, keep=keep, as_json=as_json
        )
    )


def _with_command(arguments: list[str]) -> list[str]:
    """Add the command to a bare path: quality for a folder, speed for a file."""
    if not arguments:
        return ["--help"]
    path = Path(arguments[0])
    if arguments[0] in benchmarks.commands or not path.exists():
        return arguments
    return ["quality" if path.is_dir() else "speed", *arguments]


if __name__ == "__main__":
    # on SIGTERM, still stop the worker and remove the store
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    benchmarks(_with_command(sys.argv[1:]), prog_name="python -m benchmarks")
