"""The hand-made memories that most tests look at, and small builders for others."""

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.application.services import Services
from memsvc.core.records import Kind, Observation, Prompt, Record, Summary, WorkSession

HOUR = 3_600_000
DAY = 24 * HOUR
NOW = 1_794_146_400_000
"""2026-11-08T14:00:00Z: what the clock of every sample store says."""

TIE = NOW - 6 * DAY
"""A moment that records of all three kinds share."""

_SHOP = {"project": "shop", "session_id": "work-1"}
_API = {"project": "api", "session_id": "work-2"}
_DOCS = {"project": "docs", "session_id": "work-3"}


def _observation(
    number: int, kind_of_work: str, title: str, when: int, **given: Any
) -> Observation:
    return Observation(
        source="samples",
        source_id=str(number),
        type=kind_of_work,
        title=title,
        created_at_epoch=when,
        **given,
    )


def _summary(number: int, request: str, when: int, **given: Any) -> Summary:
    return Summary(
        source="samples", source_id=str(number), request=request, created_at_epoch=when, **given
    )


def _prompt(number: int, text: str, when: int, **given: Any) -> Prompt:
    return Prompt(
        source="samples",
        source_id=str(number),
        prompt_text=text,
        prompt_number=number,
        created_at_epoch=when,
        **given,
    )


OBSERVATIONS = (
    _observation(
        1,
        "bugfix",
        "Fixed the double charge at checkout",
        NOW - 2 * HOUR,
        subtitle="The retry sent the payment twice",
        narrative="A retry after a timeout sent the same payment again; it now carries a key.",
        facts=("PaymentClient.charge sends an Idempotency-Key", "the key lives for 24 hours"),
        concepts=("problem-solution", "gotcha"),
        files_read=("src/payments/retry.py",),
        files_modified=("src/payments/client.py",),
        prompt_number=1,
        discovery_tokens=1200,
        **_SHOP,
    ),
    _observation(
        2,
        "decision",
        "Chose idempotency keys over a lock",
        NOW - 3 * HOUR,
        narrative="A lock would hold the checkout while the bank answers.",
        concepts=("trade-off",),
        files_read=("src/payments/client.py",),
        **_SHOP,
    ),
    _observation(
        3,
        "discovery",
        "SessionStoreV2 reads its cache before the file",
        NOW - DAY,
        narrative="getUserById goes through SessionStoreV2.",
        concepts=("how-it-works",),
        files_read=("src/session_store.py", "src/worker-service.ts"),
        **_API,
    ),
    _observation(
        4,
        "feature",
        "Added a health route to the worker",
        NOW - 2 * DAY,
        concepts=("what-changed",),
        files_modified=("src/worker-service.ts", "README.md"),
        **_API,
    ),
    _observation(
        5, "change", "Renamed 100%_done.txt | and a pipe", NOW - 3 * DAY, facts=("a | b",), **_DOCS
    ),
    _observation(
        6,
        "refactor",
        "Split the parser in two",
        NOW - 4 * DAY,
        files_modified=("src/parser/lexer.py", "src/parser/grammar.py", "docs/100%_done.txt"),
        concepts=("pattern",),
        **_API,
    ),
    _observation(7, "bugfix", "修复登录问题", NOW - 5 * DAY, narrative="登录令牌过期。", **_API),
    _observation(8, "discovery", "Ties are broken by id", TIE, concepts=("how-it-works",), **_SHOP),
    _observation(
        9,
        "discovery",
        "A second record at the same moment",
        TIE,
        files_read=("src/snake_case.py", "srcXpayments/client.py"),
        **_SHOP,
    ),
    _observation(
        10,
        "bugfix",
        "ECONNREFUSED when the worker is down",
        NOW - 7 * DAY,
        concepts=("gotcha",),
        **_API,
    ),
    _observation(
        11,
        "decision",
        "Payments are retried three times",
        NOW - 8 * DAY,
        concepts=("Trade-Off", "why-it-exists"),
        files_read=("src/payments/retry.py", "vendor/src/payments/retry.py"),
        **_SHOP,
    ),
    _observation(12, "feature", "Checkout shows the delivery date", NOW - 9 * DAY, **_SHOP),
    _observation(
        13,
        "change",
        "Moved CLAUDE.md to the root",
        NOW - 10 * DAY,
        files_modified=("./CLAUDE.md", "docs\\guide.md"),
        **_DOCS,
    ),
    _observation(14, "Bugfix", "Don't swallow the timeout", NOW - 20 * DAY, **_API),
    _observation(15, "security-alert", "A token was printed to the log", NOW - 40 * DAY, **_API),
    _observation(16, "discovery", "Naïve café menus sort by locale", NOW - 60 * DAY, **_DOCS),
    _observation(
        17,
        "decision",
        "Double charge: refunds go through the ledger",
        NOW - 200 * DAY,
        narrative="A double charge is refunded through the ledger, never by hand.",
        concepts=("gotcha",),
        **_SHOP,
    ),
    _observation(18, "discovery", "v5.4.0 changed the search route", NOW - 210 * DAY, **_API),
    _observation(19, "feature", "First import of the catalogue", NOW - 300 * DAY, **_SHOP),
    _observation(20, "change", "Initial commit", NOW - 400 * DAY, project="shop"),
)

SUMMARIES = (
    _summary(
        1,
        "Find out why customers are charged twice",
        NOW - HOUR,
        investigated="the retry of the payment client",
        learned="the bank answers late, the retry charges again",
        completed="idempotency keys for every payment at checkout",
        next_steps="watch the ledger",
        files_read=("src/payments/retry.py",),
        files_edited=("src/payments/client.py",),
        **_SHOP,
    ),
    _summary(2, "Make the worker answer faster", TIE, learned="the cache is read first", **_API),
    _summary(3, "Write the guide", NOW - 9 * DAY, completed="docs/guide.md", **_DOCS),
    _summary(
        4,
        "Show the delivery date at checkout",
        NOW - 9 * DAY + HOUR,
        files_edited=("src/checkout/view.py",),
        **_SHOP,
    ),
    _summary(5, "Import the catalogue", NOW - 300 * DAY, notes="slow, but only once", **_SHOP),
)

PROMPTS = (
    _prompt(1, "why is the customer charged twice?", NOW - 4 * HOUR, **_SHOP),
    _prompt(2, "add a health route, please", NOW - 2 * DAY - HOUR, **_API),
    _prompt(3, "ties: what comes first?", TIE, **_SHOP),
    _prompt(4, "why does the worker refuse the connection", NOW - 7 * DAY - HOUR, **_API),
    _prompt(5, "write the guide", NOW - 10 * DAY - HOUR, **_DOCS),
    _prompt(6, "import the catalogue", NOW - 301 * DAY, **_SHOP),
)

WORK_SESSIONS = (
    WorkSession(
        **_SHOP,
        started_at_epoch=NOW - 301 * DAY,
        completed_at_epoch=NOW - HOUR,
        status="completed",
    ),
    WorkSession(**_API, started_at_epoch=NOW - 210 * DAY),
)

RECORDS: tuple[Record, ...] = (*OBSERVATIONS, *SUMMARIES, *PROMPTS)


def new_store(path: Path) -> SqliteStore:
    """An empty store at this path: a copy, as making one takes ten times as long."""
    path.write_bytes(_empty_store())
    return open_store(path)


@cache
def _empty_store() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memsvc.db"
        open_store(path).close()
        return path.read_bytes()


def fill(store: SqliteStore) -> None:
    """Write the sample memories; ids follow their order, so observation 1 is `#1`."""
    store.write(RECORDS, WORK_SESSIONS)


def services_over(store: SqliteStore) -> Services:
    """The use cases over a store, at the samples' present moment."""
    return Services(store, lambda: NOW)


def named(name: str, when: int = NOW, **given: Any) -> Observation:
    """An observation whose title and source id are this name."""
    return Observation(source="t", source_id=name, title=name, created_at_epoch=when, **given)


def numbered(records: Iterable[Record]) -> list[Record]:
    """Records, each with a source id of its own."""
    return [
        replace(record, source="made", source_id=str(number))
        for number, record in enumerate(records)
    ]


def refs_in_time() -> list[str]:
    """The refs of all samples in the store's order of time."""
    letters = {Kind.OBSERVATION: "", Kind.SESSION: "S", Kind.PROMPT: "P"}
    placed = [
        (
            record.created_at_epoch,
            int(record.source_id),
            place,
            f"{letters[kind]}{record.source_id}",
        )
        for place, (kind, records) in enumerate(
            zip(Kind, (OBSERVATIONS, SUMMARIES, PROMPTS), strict=True)
        )
        for record in records
    ]
    return [ref for *_, ref in sorted(placed)]
