"""Checks that no text breaks the worker, and that every word of a title finds its record."""

import random
import string
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice, product
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from benchmarks.corpus import Item, sample_items, title_words
from benchmarks.http_client import Answer, Client, url
from benchmarks.loading import load
from benchmarks.tables import report
from benchmarks.worker import Worker, last_words, running_worker, temporary_home
from memsvc.core.query import MAX_LENGTH

Asked = TypeVar("Asked")
Found = TypeVar("Found")

ROUTES = ("/api/search/observations", "/api/search/sessions", "/api/search/prompts")
CLIENTS = 4
SLOWEST = 5
PAGE = 100
BATCH = 500
TOLD_EVERY = 5000

SYMBOLS = string.punctuation + " \0"
OPERATORS = (
    *("AND", "OR", "NOT", "NEAR", "NEAR(", "NEAR(a b", "NEAR(a b, 2)", "NEAR()", "a AND", "OR b"),
    *(
        "NOT a",
        "a NOT",
        "a AND OR b",
        "title:",
        "title : a",
        "{title narrative} : a",
        "- title : a",
    ),
    *("tags : x", "parts:a", "rowid", "rank", "^a", "a + b", "a*", "*a", "*", '"', '""', '"""'),
    *('"a', 'a"', '"a" "', "(", ")", "()", "((a)", "a)", "'", "''", "'; DROP TABLE x; --", ";"),
    *(
        "type:",
        "file:",
        "concept:",
        "project:",
        "type:,",
        'type:"',
        "-",
        "--",
        "---",
        "-a",
        '-"a b"',
    ),
    *('-"', "-title:a", "-type:bugfix", "title:-a", 'title:"a b"', "title:title:a", "file:*", "%"),
    *(
        "_",
        "a_b",
        "%00",
        "%ff",
        "&",
        "a&b",
        "#",
        "?",
        "=",
        "+",
        "\\",
        "\\0",
        "$x",
        "?1",
        ":a",
        "@a",
    ),
)
SCRIPTS = (
    *(
        "修复",
        "用户登录失败",
        "ログイン",
        "認証トークン",
        "로그인 오류",
        "登",
        "日本語 text",
        "，。！",
        "　",
    ),
    *(
        "🔥",
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "é",
        "e\u0301",
        "ﬁ",
        "İ",
        "ß",
        "ǅ",
        "\u202e",
        "\u200b",
        "\ufeff",
        "\uffff",
    ),
    *("\ud800", "\udfff", "a\ud83d", "\udc00b", "\U0010ffff", "\U00020000", "١٢٣", "नमस्ते", "שלום"),
)
LONG = (
    *("a" * 100_000, "a " * 50_000, '"' * 20_000, "(" * 20_000, "-" * 20_000, "* " * 20_000),
    *("修" * 33_000, "🔥" * 25_000, "getUserById" * 9_000, "a-b_c." * 16_000, "\0" * 20_000),
    *("AND " * 25_000, '"a" ' * 25_000, "title:a " * 12_000, "file:a/b " * 11_000, "x*" * 20_000),
    *(" ".join(f"word{number}" for number in range(10_000)), "type:" * 20_000, "a/" * 50_000),
)
BYTES = (b"\xff\xfe", b"\x80", b"a\xc3", b"\xf0\x9f\x94", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf8\x88")


def hostile_queries(count: int, seed: int) -> Iterator[bytes]:
    """Hostile queries: the known ones first, then mixtures."""
    chance = random.Random(seed)
    known = _known()
    yield from islice(known, count)
    pieces = [*OPERATORS, *SCRIPTS, *map(chr, range(128)), *SYMBOLS * 2, "word", "fix", "a.b", " "]
    for _ in range(count - KNOWN):
        mixture = "".join(chance.choices(pieces, k=chance.randint(1, 12)))
        yield _encoded(mixture) + (chance.choice(BYTES) if chance.random() < 0.05 else b"")


def _known() -> Iterator[bytes]:
    yield from (_encoded(text) for text in (*OPERATORS, *SCRIPTS, *LONG))
    yield from BYTES
    yield from (_encoded(chr(code)) for code in range(128))
    yield from (_encoded(left + right) for left, right in product(SYMBOLS, repeat=2))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


KNOWN = sum(1 for _ in _known())
"""The number of hostile queries before the mixtures."""


@dataclass(slots=True)
class Tally:
    """The results of the requests to one route; `worst` has the slowest, in seconds."""

    statuses: Counter[int] = field(default_factory=Counter)
    worst: list[tuple[float, bytes]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def note(self, route: str, query: bytes, answer: Answer) -> None:
        """Count one answer."""
        self.statuses[answer.status] += 1
        self.worst = sorted([*self.worst, (answer.seconds, query)], reverse=True)[:SLOWEST]
        if answer.status != 200 and answer.status not in _refusals(query):
            self.failures.append(f"{route} answered {answer.status} to {shown(query)}")


def _refusals(query: bytes) -> tuple[int, ...]:
    """The statuses that refuse a query: a blank one is missing, and length has its limits."""
    text = query.decode("utf-8", "replace")
    if len(text) > MAX_LENGTH:
        return (400, 431)
    return () if text.strip() else (400,)


def shown(query: bytes) -> str:
    """A query in readable form."""
    text = repr(query.decode("utf-8", "backslashreplace"))
    return text if len(text) <= 60 else f"{text[:50]}… ({len(query):,} bytes)"


def measure_hostile(corpus: Path, *, count: int, words: int, seed: int, as_json: bool) -> int:
    """Run hostile queries and single words of titles; the exit code says whether all passed."""
    with temporary_home() as home:
        print(f"importing {corpus.name}", file=sys.stderr)
        load(corpus, home)
        with running_worker(home) as worker:
            sections, failures = _measure(worker, corpus, count, words, seed)
        if any("answered 5" in failure or "answered 0" in failure for failure in failures):
            sections["the worker's log ends"] = last_words(home)
    return report(sections, failures, as_json=as_json)


def _measure(
    worker: Worker, corpus: Path, count: int, words: int, seed: int
) -> tuple[dict[str, Any], list[str]]:
    tallies = {route: _attack(worker, route, hostile_queries(count, seed)) for route in ROUTES}
    misses, asked = _miss_words(worker, corpus, words, seed)
    sections: dict[str, Any] = {
        "hostile queries": [_tally_row(route, tally) for route, tally in tallies.items()],
        "slowest": [row for route, tally in tallies.items() for row in _slow_rows(route, tally)],
        "single words of titles": {"asked": asked, "misses": len(misses)},
    }
    return sections, [each for tally in tallies.values() for each in tally.failures] + misses


def _tally_row(route: str, tally: Tally) -> dict[str, Any]:
    total = sum(tally.statuses.values())
    statuses = {str(status): tally.statuses[status] for status in sorted(tally.statuses)}
    failed = {"failures": len(tally.failures)}
    return {"route": route, "requests": total, **statuses, **failed}


def _slow_rows(route: str, tally: Tally) -> list[dict[str, Any]]:
    return [
        {"route": route, "ms": 1000 * seconds, "query": shown(query)}
        for seconds, query in tally.worst
    ]


def _attack(worker: Worker, route: str, queries: Iterable[bytes]) -> Tally:
    """Send every query to one route."""
    tally = Tally()
    for done, (query, answer) in enumerate(
        _together(worker, queries, lambda client, query: client.get(url(route, {"query": query})))
    ):
        tally.note(route, query, answer)
        if done % TOLD_EVERY == 0:
            print(f"{route}: {done:,} asked", file=sys.stderr)
    return tally


def _together(
    worker: Worker, questions: Iterable[Asked], ask: Callable[[Client, Asked], Found]
) -> Iterator[tuple[Asked, Found]]:
    """Each request with its answer, from several simultaneous clients."""
    idle: SimpleQueue[Client] = SimpleQueue()

    def answer(question: Asked) -> tuple[Asked, Found]:
        client = idle.get()
        try:
            return question, ask(client, question)
        finally:
            idle.put(client)

    remaining = iter(questions)
    with ExitStack() as stack:
        for _ in range(CLIENTS):
            idle.put(stack.enter_context(worker.client()))
        pool = stack.enter_context(ThreadPoolExecutor(CLIENTS))
        while some := list(islice(remaining, BATCH)):
            yield from pool.map(answer, some)


def _miss_words(worker: Worker, corpus: Path, count: int, seed: int) -> tuple[list[str], int]:
    """The words of sampled titles that do not find their record, and the number tested."""
    chance = random.Random(seed)
    items = sample_items(corpus, count, chance)
    asked = [(chance.choice(words), item) for item in items if (words := title_words(item))]
    print(f"asking {len(asked):,} single words of titles", file=sys.stderr)
    answers = _together(worker, asked, _finds)
    return [_miss(word, item) for (word, item), found in answers if not found], len(asked)


def _miss(word: str, item: Item) -> str:
    return f"{word!r} does not find {_id(item)}: {str(item['title'])[:80]!r}"


def _id(item: Item) -> str:
    return str(item.get("id", item.get("_id")))


def _finds(client: Client, asked: tuple[str, Item]) -> bool:
    """Whether a word finds the record with it in the title, among the records of the same time."""
    word, item = asked
    moment = item["created_at_epoch"]
    narrow = {"dateStart": moment, "dateEnd": moment, "format": "full", "limit": PAGE}
    offset: int | None = 0
    while offset is not None:
        answer = client.get(url(ROUTES[0], {"query": word, **narrow, "offset": offset}))
        if answer.status != 200:
            return False
        if any(row["source_id"] == _id(item) for row in answer.json["results"]):
            return True
        offset = answer.json["next_offset"]
    return False
