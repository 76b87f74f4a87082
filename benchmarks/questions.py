"""Realistic requests, from the real words, names and times of a corpus."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks.corpus import Item, frequent_words, title_words
from benchmarks.http_client import url

EVERYDAY_WORDS = 300

Parameters = Mapping[str, object]


class Questions:
    """Draws parameters from a sample of a corpus."""

    def __init__(self, items: Sequence[Item], stored: int, chance: random.Random) -> None:
        self._items = items
        self._stored = stored
        self._chance = chance
        self._titled = [item for item in items if title_words(item)] or [{"title": "memory"}]
        self._everyday = frequent_words(items, EVERYDAY_WORDS)

    def words(self) -> str:
        """One to three words of a title."""
        words = title_words(self._chance.choice(self._titled))
        return " ".join(self._chance.sample(words, min(len(words), self._chance.randint(1, 3))))

    def question(self) -> str:
        """Six to ten everyday words."""
        return " ".join(self._chance.choices(self._everyday, k=self._chance.randint(6, 10)))

    def value(self, *fields: str, otherwise: str) -> str:
        """A value of one of these fields, from some record."""
        for item in self._chance.sample(self._items, min(20, len(self._items))):
            for field in fields:
                if held := item.get(field):
                    return str(self._chance.choice(held) if isinstance(held, list) else held)
        return otherwise

    def file(self) -> str:
        """A file path from some record."""
        return self.value("files_modified", "files_read", otherwise="README.md")

    def folder(self) -> str:
        """A folder from some record."""
        return self.file().rpartition("/")[0] or "src"

    def project(self) -> str:
        """The project of some record."""
        return self.value("project", otherwise="project")

    def anchor(self) -> str:
        """The number of some record."""
        return str(self._chance.randint(1, max(1, self._stored)))

    def refs(self) -> str:
        """The numbers of five records."""
        return ",".join(self.anchor() for _ in range(5))

    def moment(self) -> str:
        """The time of some record, in ms."""
        return self.value("created_at_epoch", otherwise="2026-01-01")


def routes(ask: Questions) -> dict[str, Callable[[], str]]:
    """For each route, and each typical way to use it, a function that makes a request."""
    makers = dict(_text_searches(ask)) | dict(_filters(ask)) | dict(_contexts(ask))
    return {name: _urls(path, parameters) for name, (path, parameters) in makers.items()}


def _urls(path: str, parameters: Callable[[], Parameters]) -> Callable[[], str]:
    return lambda: url(path, parameters())


Maker = tuple[str, tuple[str, Callable[[], Parameters]]]


def _text_searches(ask: Questions) -> Iterator[Maker]:
    for number, kind in enumerate(("observations", "sessions", "prompts"), 1):
        path = f"/api/search/{kind}"
        yield f"{number} {kind}, words", (path, lambda: {"query": ask.words()})
        yield f"{number} {kind}, question", (path, lambda: {"query": ask.question()})
    observations = "/api/search/observations"
    yield (
        "1 observations, words in a project",
        (observations, lambda: {"query": ask.words(), "project": ask.project()}),
    )
    yield (
        "1 observations, words, full",
        (observations, lambda: {"query": ask.words(), "format": "full"}),
    )
    yield "- search of all kinds, words", ("/api/search", lambda: {"query": ask.words()})


def _filters(ask: Questions) -> Iterator[Maker]:
    by_type, by_concept = "/api/search/by-type", "/api/search/by-concept"
    yield "4 by-type", (by_type, lambda: {"type": _type(ask)})
    yield "4 by-type, words", (by_type, lambda: {"type": _type(ask), "query": ask.words()})
    yield "5 by-concept", (by_concept, lambda: {"concept": _concept(ask)})
    yield (
        "5 by-concept, words",
        (by_concept, lambda: {"concept": _concept(ask), "query": ask.words()}),
    )
    by_file = "/api/search/by-file"
    yield "6 by-file, file", (by_file, lambda: {"filePath": ask.file()})
    yield "6 by-file, folder", (by_file, lambda: {"filePath": ask.folder()})
    yield (
        "6 by-file, folder, words",
        (by_file, lambda: {"filePath": ask.folder(), "query": ask.words()}),
    )


def _type(ask: Questions) -> str:
    return ask.value("type", otherwise="discovery")


def _concept(ask: Questions) -> str:
    return ask.value("concepts", otherwise="gotcha")


def _contexts(ask: Questions) -> Iterator[Maker]:
    recent, timeline = "/api/context/recent", "/api/context/timeline"
    by_query = "/api/timeline/by-query"
    yield "7 recent", (recent, lambda: {"project": ask.project()})
    yield "7 recent, words", (recent, lambda: {"project": ask.project(), "query": ask.words()})
    yield "8 timeline, record", (timeline, lambda: {"anchor": ask.anchor()})
    yield "8 timeline, date", (timeline, lambda: {"anchor": ask.moment()})
    yield "9 by-query, auto", (by_query, lambda: {"query": ask.words()})
    yield (
        "9 by-query, interactive",
        (by_query, lambda: {"query": ask.words(), "mode": "interactive"}),
    )
    yield "10 help", ("/api/search/help", lambda: {"operation": "by-file"})
    yield "- read five", ("/api/observations/batch", lambda: {"ids": ask.refs()})
    yield "- session start", ("/api/context/inject", lambda: {"project": ask.project()})
