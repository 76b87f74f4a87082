"""What memory costs and saves: one discovery counts once, whoever tells it."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from old_stores import bring_back
from samples import DAY, NOW, fill, new_store, numbered
from strategies import records

from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.answers.rows import read_tokens
from memsvc.core.economics import MAX_GAP_MS, Discovery, Economics, discovery_cost
from memsvc.core.filters import Filter
from memsvc.core.records import Kind, Observation, Prompt, Record, Summary


def cost_of(client: FlaskClient, *observations: dict[str, Any]) -> int:
    """What learning costs, by the worker's own counts, once these are stored."""
    stored = [
        {"title": f"note {number}", "project": "shop", "created_at_epoch": NOW, **each}
        for number, each in enumerate(observations)
    ]
    assert client.post("/api/observations", json=stored).get_json()["stored"] == len(stored)
    cost = client.get("/api/stats").get_json()["economics"]["discovery_tokens"]
    page = client.get("/api/context/inject?render=json").get_json()
    assert page["economics"]["discovery_tokens"] == cost
    return int(cost)


SAME = {"session_id": "work-1", "prompt_number": 1, "discovery_tokens": 900}


def test_records_of_one_discovery_count_its_cost_once(own_client: FlaskClient) -> None:
    assert cost_of(own_client, SAME, SAME, {**SAME, "created_at_epoch": NOW + MAX_GAP_MS}) == 900


@pytest.mark.parametrize(
    "other",
    [
        {"discovery_tokens": 901},
        {"prompt_number": 2},
        {"session_id": "work-2"},
        {"project": "api"},
        {"created_at_epoch": NOW + MAX_GAP_MS + 1},
    ],
    ids=str,
)
def test_what_was_learned_apart_counts_apart(
    own_client: FlaskClient, other: dict[str, Any]
) -> None:
    cost = cost_of(own_client, SAME, {**SAME, **other})
    assert cost == 900 + other.get("discovery_tokens", 900)


def test_the_saving_is_told_of_records_whose_cost_is_known(own_client: FlaskClient) -> None:
    own_client.post("/api/observations", json={"title": "unknown " * 400})
    own_client.post("/api/observations", json={"title": "known", "discovery_tokens": 1000})
    told = own_client.get("/api/stats").get_json()["economics"]
    known = own_client.get("/api/search?query=known").get_json()["results"][0]["read_tokens"]
    assert told["discovery_tokens"] == 1000
    assert told["saved_tokens"] == 1000 - known
    assert told["saved_percent"] == round((1000 - known) / 10)
    assert told["read_tokens"] > 800


def test_reading_more_than_learning_cost_saves_nothing(own_client: FlaskClient) -> None:
    own_client.post("/api/observations", json={"title": "long " * 90, "discovery_tokens": 5})
    told = own_client.get("/api/stats").get_json()["economics"]
    assert (told["saved_tokens"], told["saved_percent"]) == (0, 0)


def test_an_empty_store_costs_and_saves_nothing(own_client: FlaskClient) -> None:
    told = own_client.get("/api/stats").get_json()["economics"]
    assert set(told.values()) == {0}


def test_what_is_forgotten_costs_nothing_any_more(own_client: FlaskClient) -> None:
    before = own_client.get("/api/stats").get_json()["economics"]
    own_client.post("/api/observations", json={"title": "secret", "discovery_tokens": 700})
    assert own_client.get("/api/stats").get_json()["economics"] != before
    own_client.delete("/api/observation/1")
    assert own_client.get("/api/stats").get_json()["economics"] == before


@given(written=st.lists(records, max_size=12))
def test_the_store_counts_what_reading_costs_as_every_answer_does(
    tmp_path_factory: pytest.TempPathFactory, written: list[Record]
) -> None:
    path = tmp_path_factory.mktemp("costs") / "memsvc.db"
    with contextlib.closing(new_store(path)) as store:
        store.write(written)
        hits = store.page(list(Kind), Filter(), newest_first=True, limit=100, offset=0)
        found = store.records(hit.ref for hit in hits)
        assert store.economics().read == sum(read_tokens(r, ref) for ref, r in found.items())


def test_a_store_from_before_costs_were_kept_counts_them_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "memsvc.db"
    store = open_store(path)
    fill(store)
    costs = store.economics()
    store.close()
    bring_back(path, 3)
    store = open_store(path)
    with contextlib.closing(store):
        assert store.economics() == costs
        assert costs.learned == 1200


def test_control_characters_and_empty_numbers_cost_the_same_in_the_store(
    own_store: SqliteStore,
) -> None:
    text = "".join(map(chr, range(1, 160))) + '\\ "quoted" \u2028 登录 🚀'
    shape = {"project": text, "session_id": "s", "created_at_epoch": NOW - DAY}
    made = [
        Observation(title=text, facts=(text, ""), concepts=("a",), **shape),
        Observation(title="numbered", prompt_number=3, discovery_tokens=12345, **shape),
        Summary(request=text, files_edited=(text,), **shape),
        Prompt(prompt_text=text, prompt_number=0, **shape),
    ]
    receipts = own_store.write(numbered(made))
    found = own_store.records(receipt.ref for receipt in receipts if receipt.ref)
    assert own_store.economics().read == sum(read_tokens(r, ref) for ref, r in found.items())


DISCOVERIES = st.builds(
    Discovery,
    st.sampled_from(["api", "shop"]),
    st.sampled_from(["work-1", "work-2"]),
    st.integers(-1, 2),
    st.sampled_from([5, 700]),
    st.integers(0, 6).map(lambda number: number * MAX_GAP_MS // 2),
)


@given(discoveries=st.lists(DISCOVERIES, max_size=30))
def test_the_cost_of_learning_lies_between_each_amount_once_and_all_of_them(
    discoveries: list[Discovery],
) -> None:
    cost = discovery_cost(sorted(discoveries))
    assert cost <= sum(each.tokens for each in discoveries)
    assert cost >= sum({each.tokens for each in discoveries})


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_nobody_saves_more_than_learning_cost(known: int, cost: int) -> None:
    found = Economics(known, known, cost)
    assert 0 <= found.saved <= cost
    assert 0 <= found.percent <= 100
