"""Corpora: records as JSON Lines, and the real words, names and times in them."""

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import click

Item = dict[str, Any]

WORD = re.compile(r"[^\W_](?:\S*[^\W_])?")
"""A word between blanks, without the punctuation around it."""

FILTER = re.compile(r"(?:title|file|type|concept|project):", re.IGNORECASE)
"""The start of a word that the query language reads as a filter."""


def read_items(path: Path) -> Iterator[Item]:
    """The records of a corpus, plain or gzipped."""
    try:
        with _open(path) as lines:
            yield from (json.loads(line) for line in lines if line.strip())
    except (OSError, ValueError) as error:
        raise click.ClickException(
            f"{path} cannot be read ({error}); give JSON Lines, plain or .gz, one record per line."
        ) from error


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def write_items(items: Iterable[Item], path: Path) -> None:
    """Write records as JSON Lines."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(item, ensure_ascii=False) + "\n" for item in items)


def sample_items(path: Path, count: int, chance: random.Random) -> list[Item]:
    """A uniform random sample of a corpus."""
    kept: list[Item] = []
    for number, item in enumerate(read_items(path)):
        if number < count:
            kept.append(item)
        elif (place := chance.randrange(number + 1)) < count:
            kept[place] = item
    if not kept:
        raise click.ClickException(f"{path} has no records; give a corpus that has some.")
    return kept


def title_words(item: Item) -> list[str]:
    """The words of a title that the query language reads as plain words."""
    found: list[str] = WORD.findall(str(item.get("title") or ""))
    return [word for word in found if not FILTER.match(word)]


def frequent_words(items: Iterable[Item], count: int) -> list[str]:
    """The most frequent words of narratives, as in everyday questions."""
    counts: Counter[str] = Counter()
    for item in items:
        counts.update(re.findall(r"[a-z]{2,}", str(item.get("narrative") or "").lower()))
    return [word for word, _ in counts.most_common(count)] or ["what", "was", "it"]


def missing_kinds(path: Path) -> set[str]:
    """The kinds, session or prompt, that a corpus lacks."""
    return {"session", "prompt"} - {str(item.get("kind")) for item in read_items(path)}


def derived_items(path: Path, kinds: set[str]) -> Iterator[Item]:
    """A session and a prompt for each work session, with the words of its first record."""
    seen: set[str] = set()
    for item in read_items(path):
        session = str(item.get("session_id") or "")
        if session and session not in seen:
            seen.add(session)
            yield from (made for made in _derived(item, session) if made["kind"] in kinds)


def _derived(item: Item, session: str) -> list[Item]:
    shared = {name: item.get(name) for name in ("project", "session_id", "created_at_epoch")}
    title, narrative = str(item.get("title") or ""), str(item.get("narrative") or "")
    summary = {"request": title, "learned": narrative, "completed": item.get("subtitle") or ""}
    files = {"files_edited": item.get("files_modified") or []}
    return [
        {"kind": "session", "id": f"session-{session}", **shared, **summary, **files},
        {"kind": "prompt", "id": f"prompt-{session}", **shared, "prompt_text": _prompt(item)},
    ]


def _prompt(item: Item) -> str:
    return f"{item.get('title') or ''}. {item.get('subtitle') or ''}".strip()
