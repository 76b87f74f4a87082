"""Requests made to take long: a hundred by hand, each with a name, and any number at random."""

import random
import string
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from benchmarks.http_client import url

Bomb = tuple[str, str]
"""The name of a request, and its path with the query string."""

SEARCH: Final = "/api/search"
OBSERVATIONS: Final = "/api/search/observations"
LETTERS: Final = string.ascii_lowercase
PAIRS: Final = ("co", "in", "re", "de", "pr", "un", "st", "se")
FAR: Final = 1_000_000


def bombs(words: list[str], paths: list[str]) -> Iterator[Bomb]:
    """The requests made by hand, from the frequent words and the paths of a corpus."""
    for name, path, given in _all(words, paths):
        yield name, url(path, {key: str(value)[:30_000] for key, value in given.items()})


def _all(words: list[str], paths: list[str]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    yield from (
        (f"{name}, {way}", SEARCH, {"query": query[:2000], **more})
        for name, query in _queries(words)
        for way, more in WAYS.items()
    )
    yield from _filters(paths)
    yield from _others(words)


WAYS: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "explained": {"explain": 1, "limit": 100, "days": "all"},
    "far page": {"offset": 50_000, "limit": 100, "days": "all"},
    "by date, full": {"orderBy": "date_asc", "limit": 100, "format": "full"},
}


def _queries(words: list[str]) -> Iterator[Bomb]:
    yield "26 letters as prefixes", " ".join(f"{letter}*" for letter in LETTERS)
    yield "8 pairs as prefixes", " ".join(f"{pair}*" for pair in PAIRS)
    yield "8 title prefixes", " ".join(f"title:{pair}*" for pair in PAIRS)
    yield "8 prefixes excluded", "fix " + " ".join(f"-{pair}*" for pair in PAIRS)
    yield "compound prefixes", " ".join(f"{pair}-{pair}-{pair}*" for pair in PAIRS)
    yield "64 frequent words", " ".join(words[:64])
    yield "stop words", "the a of to in and is it for on with as by at from"
    yield "phrases of frequent words", " ".join(f'"{a} {b}"' for a, b in pairwise(words[:30]))
    yield "one phrase of stop words", '"' + "the " * 300 + '"'
    yield "64 title words", " ".join(f"title:{word}" for word in words[:64])
    yield "only exclusions", " ".join(f"-{word}" for word in words[:64])
    yield "a run of Chinese", "修复用户登录失败的问题" * 180
    yield "a Chinese phrase", '"' + "登录" * 400 + '"'
    yield "misspelt words", " ".join(f"{word}xq{word[::-1]}" for word in words[:30])
    yield "one word of 2,000 letters", "abcdefghij" * 200
    yield "camel case", "getUserByIdFromTheStoreAndUpdate" * 60
    yield "dots and slashes", "a/b.c-d_e" * 220
    yield "quotes", '"' * 2000
    yield "globs in the query", " ".join(f"file:*{a}*{b}*" for a, b in pairwise(LETTERS))


def _filters(paths: list[str]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    files = "/api/search/by-file"
    yield "a star", files, {"filePath": "*", "limit": 100}
    yield "16 stars", files, {"filePath": ",".join(f"*{c}*" for c in LETTERS[:16])}
    yield "8 stars each", files, {"filePath": ",".join(f"*{c}*e*a*i*o*t*r*" for c in LETTERS[:16])}
    yield "100 paths", files, {"filePath": ",".join(paths[:100]), "query": "fix the test"}
    yield "100 unknown paths", files, {"filePath": ",".join(f"{p}x" for p in paths[:100])}
    yield "regular expression", files, {"filePath": "(a+)+$,[a-z]*?(.*)*"}
    yield "a long path", files, {"filePath": "a/" * 499}
    yield "all dates", SEARCH, {"query": "fix", "dateStart": "1970-01-01", "dateEnd": "9999-12-31"}
    yield "100 unknown projects", SEARCH, {"project": ",".join(f"p{n}" for n in range(100))}
    yield (
        "every filter",
        SEARCH,
        {
            "query": "fix the test " + " ".join(f"{pair}*" for pair in PAIRS),
            "files": ",".join(paths[:84] + [f"*{c}*" for c in LETTERS[:16]]),
            "type": "bugfix,feature,decision,change,discovery,refactor",
            "concepts": ",".join(f"concept-{n}" for n in range(100)),
            "project": ",".join(f"p{n}" for n in range(100)),
            "dateStart": "2000-01-01",
            "explain": 1,
            "limit": 100,
        },
    )
    yield "many types, far page", "/api/search/by-type", {"type": "bugfix,feature", "offset": FAR}
    yield "types ranked", "/api/search/by-type", {"type": "bugfix,feature", "query": "co* in* re*"}


def _others(words: list[str]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    prefixes = " ".join(f"{pair}*" for pair in PAIRS)
    yield "1,000 records", "/api/observations/batch", {"ids": ",".join(map(str, range(1, 1001)))}
    yield (
        "1,000 records, small budget",
        "/api/observations/batch",
        {"ids": ",".join(map(str, range(1, 1001))), "max_tokens": 100},
    )
    yield (
        "100 full records, budget",
        OBSERVATIONS,
        {"query": "fix", "limit": 100, "format": "full", "max_tokens": 5000, "days": "all"},
    )
    yield "50 work sessions, full", "/api/context/recent", {"limit": 50, "format": "full"}
    yield "recent, ranked", "/api/context/recent", {"limit": 50, "query": prefixes}
    yield (
        "timeline of 101, full",
        "/api/context/timeline",
        {"anchor": 5000, "depth_before": 50, "depth_after": 50, "format": "full"},
    )
    yield "timeline by prefixes", "/api/timeline/by-query", {"query": prefixes, "depth_before": 50}
    yield "timeline of 1970", "/api/context/timeline", {"anchor": "1970-01-01", "depth_after": 50}
    yield "session start", "/api/context/inject", {"limit": 100, "files": "*a*,*b*,*c*"}
    yield "statistics", "/api/stats", {}
    yield "projects", "/api/projects", {}
    yield "semantic", "/api/search/semantic", {"query": " ".join(words[:300])[:2000], "limit": 100}


def random_queries(words: list[str], count: int, seed: int) -> Iterator[Bomb]:
    """Random queries of words, prefixes, phrases, exclusions, filters and noise."""
    chance = random.Random(seed)
    forms = ("{}", "{}", "{}*", '"{} {}"', "title:{}", "-{}", "file:*{}*", "title:{}*", "{}-{}.{}")
    for number in range(count):
        terms = []
        for _ in range(chance.choice((1, 2, 3, 5, 8, 20, 64))):
            picked = [chance.choice(words)[: chance.randint(1, 12)] for _ in range(3)]
            terms.append(chance.choice(forms).format(*picked))
        given: dict[str, Any] = {"query": " ".join(terms)[:2000]}
        given |= {
            name: chance.choice(values)
            for name, values in _OPTIONS.items()
            if chance.random() < 0.2
        }
        route = chance.choice((SEARCH, OBSERVATIONS, "/api/timeline/by-query"))
        if route == "/api/timeline/by-query":
            given = {"query": given["query"], "depth_before": 50}
        yield f"random {number}: {given['query'][:60]}", url(route, given)


_OPTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "limit": (1, 20, 100),
    "offset": (0, 100, 10_000),
    "orderBy": ("date_asc", "date_desc", "relevance"),
    "format": ("full",),
    "days": ("all", 1, 365),
    "explain": (1,),
    "max_tokens": (100, 2000),
}
