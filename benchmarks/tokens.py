"""What answers cost an agent, how good the estimate is, and whether budgets are ever exceeded."""

import random
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from benchmarks.corpus import sample_items
from benchmarks.estimator import estimator_errors, read_tokenizer, records_in_full
from benchmarks.hostile import SCRIPTS
from benchmarks.http_client import Client, url
from benchmarks.loading import load
from benchmarks.metrics import percentile
from benchmarks.questions import Questions
from benchmarks.tables import report
from benchmarks.worker import running_worker, temporary_home
from memsvc.answers.page import to_json
from memsvc.core.tokens import ESTIMATOR, count_tokens
from memsvc.schemas.parameters import MIN_BUDGET

Texts = tuple[list[str], list[str]]
"""As text and as JSON."""

SAMPLE = 5000
ROW_QUERIES = 300
TARGET = 40
"""Maximum median tokens of an index row as text."""

FORMATS = tuple((form, kind) for form in ("index", "full") for kind in ("json", "text"))
ROUTES = ("/api/search", "/api/search/observations", "/api/timeline/by-query")
BUDGETED = ROUTES[:2]


def measure_tokens(corpus: Path, *, count: int, tokenizer: Path | None, as_json: bool) -> int:
    """Measure rows and budgets; the exit code says whether all budgets were kept."""
    real = read_tokenizer(tokenizer) if tokenizer else None
    chance = random.Random(1)
    with temporary_home() as home:
        print(f"importing {corpus.name}", file=sys.stderr)
        stored = load(corpus, home).stored
        ask = Questions(sample_items(corpus, SAMPLE, chance), stored, chance)
        with running_worker(home) as worker, worker.client() as client:
            rows = _row_texts(client, ask)
            sections, failures = _measure(client, ask, chance, count, rows)
            if real:
                sections |= _estimates(client, chance, real, rows)
    return report(sections, failures, as_json=as_json)


def _measure(
    client: Client, ask: Questions, chance: random.Random, count: int, rows: Texts
) -> tuple[dict[str, Any], list[str]]:
    text, data = ([count_tokens(row) for row in each] for each in rows)
    failures = []
    if text and statistics.median(text) > TARGET:
        failures.append(f"a row of text costs {statistics.median(text)} tokens, at most {TARGET}")
    tried, wrong = _try_budgets(client, ask, chance, count)
    sections = {
        f"tokens of an index row ({ESTIMATOR})": [_costs("text", text), _costs("JSON", data)],
        "budgets": {"requests": tried, "exceeded or misstated": len(wrong)},
    }
    return sections, failures + wrong


def _costs(name: str, tokens: list[int]) -> dict[str, Any]:
    median = statistics.median(tokens) if tokens else None
    return {"format": name, "rows": len(tokens), "median": median, "p90": percentile(tokens, 0.9)}


def _row_texts(client: Client, ask: Questions) -> Texts:
    """Each row of many index answers, as text and as JSON."""
    print("counting the tokens of rows", file=sys.stderr)
    text: list[str] = []
    data: list[str] = []
    for _ in range(ROW_QUERIES):
        asked = url(ROUTES[1], {"query": ask.words()})
        lines = client.get(asked, "text/markdown").body.decode("utf-8").splitlines(keepends=True)
        text += [line for line in lines if line.startswith("| ")]
        data += [to_json(row) for row in client.get(asked).json["results"]]
    return text, data


def _estimates(
    client: Client, chance: random.Random, tokenizer: Tokenizer, rows: Texts
) -> dict[str, Any]:
    """The section that compares the estimator with a real tokenizer."""
    names = ("records, markdown", "records, JSON", "rows, markdown", "rows, JSON")
    texts = (*records_in_full(client, chance), *rows)
    errors = estimator_errors(tokenizer, dict(zip(names, texts, strict=True)))
    return {f"real tokens / estimated ({ESTIMATOR})": errors}


def _try_budgets(
    client: Client, ask: Questions, chance: random.Random, count: int
) -> tuple[int, list[str]]:
    """Random queries with every budget in every format: the number tested, and the failures."""
    wrong: list[str] = []
    requests = 0
    for done in range(count):
        if done % 100 == 0:
            print(f"budgets: {done:,} queries of {count:,}", file=sys.stderr)
        for asked, budget in _budgeted(_random_query(ask, chance), chance):
            requests += 1
            wrong += _overdrawn(client, asked, budget)
    return requests, wrong


def _random_query(ask: Questions, chance: random.Random) -> str:
    """Words, a question, other scripts, or a long text."""
    long = " ".join(ask.question() for _ in range(50))
    script = f"{chance.choice(SCRIPTS)} {ask.words()}"
    return chance.choice([ask.words(), ask.words(), ask.question(), script, long])


def _budgeted(query: str, chance: random.Random) -> Iterator[tuple[str, int]]:
    """The requests for one query: each format with the smallest, a small and a large budget."""
    budgets = (MIN_BUDGET, chance.randint(MIN_BUDGET, 600), chance.randint(600, 6000))
    for form, render in FORMATS:
        for budget in budgets:
            fixed = {"query": query, "format": form, "render": render, "max_tokens": budget}
            yield url(chance.choice(BUDGETED), {**fixed, "limit": chance.randint(1, 100)}), budget


def _overdrawn(client: Client, asked: str, budget: int) -> list[str]:
    """A sentence if an answer exceeded its budget or misstated its own cost."""
    answer = client.get(asked)
    body = answer.body.decode("utf-8")
    cost = count_tokens(body)
    if answer.status != 200:
        return [f"status {answer.status}: {asked[:200]}"]
    if cost > budget:
        return [f"{cost} tokens, {budget} allowed: {asked[:200]}"]
    if "render=json" in asked and answer.json["tokens"]["this"] != cost:
        return [f"costs {cost}, says {answer.json['tokens']['this']}: {asked[:200]}"]
    return []
