"""A question is about its subject, however common that is: everyday words never outweigh it."""

import pytest
from flask.testing import FlaskClient
from pages import every_page, get, refs_of, rows_of
from samples import DAY, NOW, named, numbered

from memsvc.adapters.sqlite.store import SqliteStore


@pytest.fixture
def history(own_client: FlaskClient, own_store: SqliteStore) -> FlaskClient:
    """Chroma is what everything here is about; "start" and "using" are rare."""
    titles = [f"Chroma index {number}" for number in range(20)]
    titles += [f"Start using lanes for {thing}" for thing in ("reads", "writes")]
    titles += ["Moved to Chroma", *(f"Note {number}" for number in range(15))]
    records = [named(title, NOW - n * DAY) for n, title in enumerate(titles)]
    own_store.write(numbered(records))
    return own_client


QUESTION = "when did we start using chroma"


@pytest.mark.parametrize("query", [QUESTION, "start using chroma?", "How did we find chroma"])
def test_everyday_words_of_a_question_do_not_outrank_its_subject(
    history: FlaskClient, query: str
) -> None:
    titles = [row["title"] for row in rows_of(get(history, "/api/search", query=query))]
    assert "Chroma" in titles[0]


def test_they_still_match_and_come_last(history: FlaskClient) -> None:
    pages = every_page(history, "/api/search", query=QUESTION, limit=7)
    titles = [row["title"] for page in pages for row in rows_of(page)]
    assert pages[0]["total"] == len(titles) == 23
    assert all("Chroma" in title for title in titles[:21])
    assert all("Start" in title for title in titles[21:])
    scores = [row["score"] for page in pages for row in rows_of(page)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


def test_an_everyday_word_counts_where_it_is_no_question(history: FlaskClient) -> None:
    page = get(history, "/api/search", query="start using chroma")
    assert rows_of(page)[0]["title"].startswith("Start using")


@pytest.mark.parametrize("query", ["start", "when did we start?", "using"])
def test_an_everyday_word_alone_still_finds(history: FlaskClient, query: str) -> None:
    assert len(refs_of(get(history, "/api/search", query=query))) == 2


def test_an_everyday_word_more_common_than_the_subject_still_counts(
    own_client: FlaskClient, own_store: SqliteStore
) -> None:
    titles = ["The walrus sleeps", "How to start the walrus", *(f"Start {n}" for n in range(9))]
    titles += [f"Note {number}" for number in range(30)]
    own_store.write(numbered(named(title, NOW - n) for n, title in enumerate(titles)))
    page = get(own_client, "/api/search", query="when did the walrus start")
    assert rows_of(page)[0]["title"] == "How to start the walrus"
