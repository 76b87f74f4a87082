"""How far the estimated tokens of answers are from those of a real tokenizer."""

import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click
from tokenizers import Tokenizer

from benchmarks.http_client import Client, url
from benchmarks.metrics import percentile
from benchmarks.tables import Row
from memsvc.answers.page import to_json
from memsvc.core.records import Kind
from memsvc.core.tokens import count_tokens

RECORDS = 2000
"""Maximum records to read in full."""

PAGE = 100


def read_tokenizer(path: Path) -> Tokenizer:
    """A Hugging Face tokenizer.json, without truncation."""
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more specific
        raise click.ClickException(
            f"{path} is not a tokenizer ({error}); give a Hugging Face tokenizer.json."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def estimator_errors(tokenizer: Tokenizer, texts: Mapping[str, Iterable[str]]) -> list[Row]:
    """A row per sort of text: its real tokens divided by the estimated ones."""
    return [_error(tokenizer, name, list(dict.fromkeys(each))) for name, each in texts.items()]


def _error(tokenizer: Tokenizer, name: str, texts: list[str]) -> Row:
    encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
    real = [len(each.ids) for each in encoded]
    estimated = [count_tokens(text) for text in texts]
    shares = [each / guess for each, guess in zip(real, estimated, strict=True)]
    return {
        "texts": name,
        "count": len(texts),
        "overall": sum(real) / max(1, sum(estimated)),
        "median": percentile(shares, 0.5),
        "p5": percentile(shares, 0.05),
        "p95": percentile(shares, 0.95),
    }


def records_in_full(client: Client, chance: random.Random) -> tuple[list[str], list[str]]:
    """A random sample of records, as markdown and as JSON."""
    print("reading records in full", file=sys.stderr)
    refs = [ref for kind in Kind for ref in _refs(client, kind)]
    asked = [
        url("/api/observations/batch", {"ids": ref})
        for ref in chance.sample(refs, min(RECORDS, len(refs)))
    ]
    text = [client.get(each, "text/markdown").body.decode("utf-8") for each in asked]
    data = [to_json(client.get(each).json["results"][0]) for each in asked]
    return [each.split("\n", 1)[1] for each in text], data  # without the header of the answer


def _refs(client: Client, kind: Kind) -> Iterator[str]:
    """Every ref of a kind."""
    offset: int | None = 0
    while offset is not None:
        asked = url("/api/search", {"kinds": kind, "limit": PAGE, "offset": offset})
        page = client.get(asked).json
        yield from (row["ref"] for row in page["results"])
        offset = page["next_offset"]
