"""The measurements themselves: metrics against values worked out by hand, and one run of each."""

import json
import math
from pathlib import Path
from typing import Any

import numpy
import pytest
from click.testing import CliRunner
from fake_semantic import WordEmbedder, indexed
from samples import named
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from benchmarks.__main__ import benchmarks
from benchmarks.bombs import bombs, random_queries
from benchmarks.corpus import FILTER, title_words
from benchmarks.estimator import estimator_errors
from benchmarks.evaluation import DAY_MS, compress_dates, read_gold
from benchmarks.fitting import GRID, Judged, fit
from benchmarks.hostile import KNOWN, hostile_queries
from benchmarks.http_client import url
from benchmarks.metrics import average, percentile, score
from benchmarks.savings import missed
from benchmarks.tables import table
from benchmarks.ways_to_rank import WAYS, Partial, patched, without_title
from memsvc.adapters.sqlite.store import SqliteStore
from memsvc.adapters.sqlite.vectors import SqliteVectors
from memsvc.application.semantic.index_sync import embed_record
from memsvc.core import fusion
from memsvc.core.records import Kind, Observation
from memsvc.core.semantic import passages

TITLES = ("Fixed the login redirect", "Cache warms slowly", "Retry uploads in src/upload.py")


def _item(number: int) -> dict[str, Any]:
    return {
        "id": f"r{number}",
        "type": "bugfix",
        "title": f"{TITLES[number % 3]} number{number}",
        "narrative": "it was slow because the cache was cold and the user had to wait",
        "concepts": ["gotcha"],
        "files_modified": ["src/upload.py"],
        "project": "shop",
        "session_id": f"s{number // 5}",
        "created_at_epoch": 1_700_000_000_000 + number * DAY_MS,
    }


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Thirty records."""
    _write(tmp_path / "corpus.jsonl", [_item(number) for number in range(30)])
    return tmp_path / "corpus.jsonl"


@pytest.fixture
def sets(tmp_path: Path, corpus: Path) -> Path:
    """Two evaluation sets over one corpus."""
    for name, style in (("first", "keywords"), ("second", "paraphrase")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "corpus.ref").write_text("../corpus.jsonl", "utf-8")
        meta = {"project": "shop", "style": style}
        queries = [{"_id": f"q{n}", "text": f"number{n}", "meta": meta} for n in (1, 2)]
        _write(folder / "queries.jsonl", queries)
        (folder / "qrels.tsv").write_text("query\trecord\tscore\nq1\tr1\t2\nq2\tr2\t1\n", "utf-8")
    return tmp_path


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough rows to be counted, of few queries."""
    monkeypatch.setattr("benchmarks.tokens.ROW_QUERIES", 20)


def _run(*arguments: object) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(benchmarks, [*map(str, arguments), "--json"])
    assert result.stdout, result.output
    return result.exit_code, json.loads(result.stdout)


def test_metrics_are_those_worked_out_by_hand() -> None:
    """Grades 2 at place 1 and 1 at place 3; one relevant record is not found."""
    scores = score(["a", "x", "b", "a"], {"a": 2, "b": 1, "c": 1})
    ideal = 2 + 1 / math.log2(3) + 1 / 2
    assert scores == {
        "recall@10": pytest.approx(2 / 3),
        "mrr@10": 1.0,
        "ndcg@10": pytest.approx((2 + 1 / 2) / ideal),
        "hit@1": 1.0,
        "hit@10": 1.0,
        "empty": 0.0,
    }


def test_metrics_look_no_further_than_ten() -> None:
    """A relevant record at place 11 counts for nothing."""
    scores = score([*map(str, range(10)), "a"], {"a": 1})
    assert scores == {
        "recall@10": 0,
        "mrr@10": 0,
        "ndcg@10": 0,
        "hit@1": 0,
        "hit@10": 0,
        "empty": 0,
    }


def test_metrics_of_second_place_and_of_nothing() -> None:
    """The reciprocal of the place; an empty ranking is counted as such."""
    second, nothing = score(["x", "a"], {"a": 1}), score([], {"a": 1})
    assert second["mrr@10"] == 0.5
    assert second["ndcg@10"] == pytest.approx(1 / math.log2(3))
    assert nothing["empty"] == 1
    assert average([second, nothing])["recall@10"] == 0.5


def test_percentiles_are_values_that_occur() -> None:
    """The median of four is the third; the 95th percentile of ten the last."""
    assert percentile([4, 1, 3, 2], 0.5) == 3
    assert percentile(range(10), 0.95) == 9


def test_compressed_dates_keep_their_order_and_half_lie_inside() -> None:
    """The newest becomes now, the median age 90 days."""
    items = [{"created_at_epoch": moment} for moment in (5_000, 1_000, 3_000)]
    now = 1_000 * DAY_MS
    ages = [(now - item["created_at_epoch"]) / DAY_MS for item in compress_dates(items, 90, now)]
    assert ages == pytest.approx([0, 180, 90])


def test_gold_passes_over_headers_and_grade_zero() -> None:
    """Only relevant records count."""
    assert read_gold(["q\td\tscore", "q1\ta\t1", "q1\tb\t0", "q2\tc\t2"]) == {
        "q1": {"a": 1.0},
        "q2": {"c": 2.0},
    }


def test_hostile_queries_repeat_for_a_seed_and_hold_the_known_ones() -> None:
    """The same seed gives the same queries; known ones come first."""
    queries = list(hostile_queries(KNOWN + 50, 7))
    assert queries == list(hostile_queries(KNOWN + 50, 7))
    assert len(queries) == KNOWN + 50
    assert {b"\0", b"NEAR(", b'"', b"\xff\xfe", b"\xed\xa0\x80", b"-("} <= set(queries)


def test_urls_escape_surrogates_and_bytes() -> None:
    """What no text may hold still reaches the worker."""
    assert url("/a", {"query": "\ud800 &"}) == "/a?query=%ED%A0%80%20%26"
    assert url("/a", {"query": b"\xff\0"}) == "/a?query=%FF%00"


def test_title_words_are_those_a_query_takes_as_words() -> None:
    """Punctuation around a word is no part of it; filters are left out."""
    words = title_words({"title": "[PATCH] fix (os/x) -- don't type:bugfix 修复"})
    assert words == ["PATCH", "fix", "os/x", "don't", "修复"]
    assert FILTER.match("Title:x")


def test_tables_align() -> None:
    """The first column to the left, numbers to the right, gaps as a dash."""
    rows = [{"route": "a", "ms": 1.5}, {"route": "long", "ms": 1234.0, "errors": 2}]
    assert table(rows).splitlines() == [
        "route        ms  errors",
        "a          1.50       -",
        "long   1,234.00       2",
    ]


def test_quality_finds_what_the_sets_ask_for(sets: Path) -> None:
    """Unique words find their records, on every row."""
    code, body = _run("quality", sets, "--project-filter")
    rows = {row["set"]: row for row in body["quality"]}
    assert code == 0
    assert {"first", "first project=", "first style=keywords", "second"} <= rows.keys()
    assert all(row["ndcg@10"] == 1 for row in rows.values())


def test_quality_asks_without_and_with_other_wordings(sets: Path) -> None:
    """Only the questions that have some are asked, in a row each."""
    folder = sets / "wordings"
    folder.mkdir()
    ids = [
        json.loads(line)["_id"] for line in (sets / "first/queries.jsonl").read_text().splitlines()
    ]
    lines = [{"_id": id, "also": ["other words"], "guess": "a sentence"} for id in ids[:1]]
    (folder / "first.jsonl").write_text("\n".join(map(json.dumps, lines)))
    _, body = _run("quality", sets, "--semantic", "off", "--also", folder)
    rows = [row for row in body["quality"] if "p50 ms" in row]
    assert [row["set"] for row in rows] == ["first", "first also="]
    assert [row["queries"] for row in rows] == [1, 1]
    assert rows[1]["hit@10"] == 1
    assert rows[1]["p50 / one wording"] > 0


def test_quality_fails_below_a_floor(sets: Path) -> None:
    """A floor that cannot be reached is reported by name, with the exit code."""
    floors = sets / "floors.json"
    floors.write_text('{"first": {"recall@10": 1.1}}', "utf-8")
    code, body = _run("quality", sets, "--set", "first", "--semantic", "off", "--floors", floors)
    assert code == 1
    assert body["failures"] == ["first: recall@10 is 1.000, its floor 1.100"]


def test_quality_compares_the_bound_with_none(sets: Path) -> None:
    """Compressed dates give a row for each bound, and their difference."""
    _, body = _run("quality", sets, "--set", "first", "--semantic", "off", "--compressed")
    rows = next(value for name, value in body.items() if name.startswith("quality"))
    assert [row["set"] for row in rows][::2] == ["first", "first days=all"]
    assert rows[0]["ndcg@10 - days=all"] == "+0.000"


@pytest.mark.slow
def test_ablation_ranks_the_sets_in_every_way(sets: Path) -> None:
    """Unique words find their records where words have a say, in each column."""
    code, body = _run("ablation", sets)
    rows = {row["row"]: row for row in body["ndcg@10"]}
    assert code == 0
    assert list(rows) == [row["row"] for row in body["recall@10"]]
    assert rows.keys() >= {way.name for way in WAYS}
    assert rows["fused"]["-fused"] == "+0.0000"
    for row in (rows["full text"], rows["fused"], rows["index chroma"]):
        assert (row["first keywords"], row["second paraphrase"]) == (1, 1)


def test_a_random_share_of_the_records_is_as_if_it_waited(own_store: SqliteStore) -> None:
    own_store.write([named(f"n{number}") for number in range(40)])
    semantic = indexed(own_store)
    whole, ids, name = (
        SqliteVectors(own_store.connections),
        range(1, 41),
        WordEmbedder().fingerprint,
    )
    half = Partial(own_store.connections, 0.5)
    held = half.embedded_among(Kind.OBSERVATION, ids, name)
    assert 10 < len(held) < 30
    assert set(half.vectors(Kind.OBSERVATION, ids, name)) == held
    embedded = {each.ref.id for each in half.changes(0, 99, name) if each.embedded}
    assert embedded == held < set(whole.vectors(Kind.OBSERVATION, ids, name))
    semantic.stop()


@pytest.mark.slow
def test_fit_tells_what_each_set_gains_with_it_and_without_it(sets: Path) -> None:
    """Unique words find their records, whatever the weight."""
    code, body = _run("fit", sets)
    assert code == 0
    assert [row[""] for row in body["coefficients"]] == ["in use", "fitted"]
    assert body["coefficients"][0]["bias"] == fusion.BIAS
    assert [row["set"] for row in body["ndcg@10"]] == ["first keywords", "second paraphrase"]
    for row in body["ndcg@10"]:
        assert (row["full text"], row["in use"], row["fitted"]) == (1, 1, 1)


def test_the_fit_trusts_words_where_they_gain_and_meaning_where_it_does() -> None:
    """Words find all that they cover, meaning all that they do not."""
    coverage = numpy.linspace(0, 1, 40)
    evidence = numpy.zeros((40, 5))
    evidence[:, 0] = coverage
    gains = numpy.where(coverage[:, None] > 0.5, GRID, 1 - numpy.array(GRID))
    bias, covered, *others = fit([Judged("set", "set", 1.0, evidence, gains)])
    assert bias < 0 < bias + covered
    assert others == [0, 0, 0, 0]


@pytest.mark.parametrize("body", ["short", "word " * 100])
def test_ablation_takes_the_title_out_of_the_vectors(
    body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left is what comes of embedding without it, be the record short or long."""
    record = Observation(source="s", source_id="1", title="A title", narrative=body)
    embedder = WordEmbedder()
    left = without_title(record, embed_record(embedder, record), embedder.embed)
    monkeypatch.setattr(passages, "TITLE_WEIGHT", 0.0)
    assert left == pytest.approx(embed_record(embedder, record), abs=1e-6)


def test_patches_end_with_their_block() -> None:
    """What was there before stands again, also after an error."""
    before = fusion.BIAS
    with patched([(fusion, "BIAS", 7.0)]):
        assert fusion.BIAS == 7
    assert before == fusion.BIAS


def test_an_unknown_set_is_named(sets: Path) -> None:
    """The error says what there is."""
    result = CliRunner().invoke(benchmarks, ["quality", str(sets), "--set", "third"])
    assert result.exit_code == 1
    assert "third" in result.output
    assert "first, second" in result.output


@pytest.mark.slow
def test_speed_measures_every_route(corpus: Path) -> None:
    """All ten routes answer, alone and together."""
    code, body = _run("speed", corpus, "--seconds", "0.02", "--clients", "2")
    assert code == 0, body["failures"]
    assert body["import"]["records"] == 30
    assert {row["route"].split()[0] for row in body["one client"]} > set(map(str, range(1, 11)))
    assert body["many clients"][0]["requests"] > 0


def test_hostile_reports_statuses_and_words(corpus: Path) -> None:
    """A few hostile queries on three routes, and each word finds its record."""
    code, body = _run("hostile", corpus, "--count", "40", "--words", "20")
    assert code == 0, body["failures"]
    assert [row["requests"] for row in body["hostile queries"]] == [40, 40, 40]
    assert body["single words of titles"] == {"asked": 20, "misses": 0}


@pytest.mark.usefixtures("few_rows")
def test_a_hundred_requests_made_by_hand_have_names_of_their_own() -> None:
    words, paths = [f"word{n}" for n in range(300)], [f"src/{n}.py" for n in range(200)]
    made = list(bombs(words, paths))
    assert len(made) == len(dict(made)) == 100
    assert all(len(path) < 256 * 1024 for _, path in made)
    assert list(random_queries(words, 20, 3)) == list(random_queries(words, 20, 3))


def test_slowest_asks_everything_and_health_meanwhile(corpus: Path) -> None:
    """Every request is answered; how fast is for a quiet machine to say."""
    code, body = _run("slowest", corpus, "--queries", "20", "--deadline", "600")
    assert code == 0, body["failures"]
    assert (body["made by hand"]["requests"], body["random"]["requests"]) == (100, 20)
    assert body["health meanwhile"]["requests"] == body["health meanwhile"].get("200", 0)


def test_tokens_keeps_budgets(corpus: Path) -> None:
    """Rows are counted, and no budget is exceeded."""
    code, body = _run("tokens", corpus, "--count", "3")
    assert code == 0, body["failures"]
    assert body["budgets"] == {"requests": 36, "exceeded or misstated": 0}


@pytest.mark.slow
@pytest.mark.usefixtures("few_rows")
def test_tokens_holds_the_estimator_against_a_tokenizer(corpus: Path, tmp_path: Path) -> None:
    """One token a word: fewer than a quarter of the bytes, for records and rows in both forms."""
    words = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = WhitespaceSplit()
    words.enable_truncation(2)  # a limit of the model's, which is no limit of a count
    words.save(str(tmp_path / "tokenizer.json"))
    code, body = _run("tokens", corpus, "--count", "1", "--tokenizer", tmp_path / "tokenizer.json")
    errors = next(value for name, value in body.items() if name.startswith("real tokens"))
    assert code == 0, body["failures"]
    assert [row["texts"].split(", ")[0] for row in errors] == ["records", "records", "rows", "rows"]
    assert [row["count"] for row in errors[:2]] == [30, 30]
    assert all(0.05 < row["p5"] <= row["median"] <= row["p95"] < 1 for row in errors)


def test_the_error_of_an_estimate_is_real_tokens_over_estimated_ones() -> None:
    """Three words in eight bytes are 3 / 2, one word in sixteen bytes 1 / 4, both 4 / 6."""
    words = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    words.pre_tokenizer = WhitespaceSplit()
    (error,) = estimator_errors(words, {"texts": ["a bc def", "x" * 16, "a bc def"]})
    assert (error["count"], error["overall"]) == (2, 4 / 6)
    assert (error["p5"], error["p95"]) == (1 / 4, 3 / 2)


def test_a_file_that_is_no_tokenizer_is_named(corpus: Path) -> None:
    """The error says what to give."""
    result = CliRunner().invoke(benchmarks, ["tokens", str(corpus), "--tokenizer", str(corpus)])
    assert result.exit_code == 1
    assert "tokenizer.json" in result.output


@pytest.mark.slow
def test_the_loop_finds_at_least_28_tasks_for_a_tenth_of_20_records_in_full() -> None:
    """The bar holds, and nothing but the loop clears it in tasks found."""
    code, body = _run("savings")
    loop, *others = next(rows for name, rows in body.items() if name.startswith("tokens"))
    assert code == 0, body["failures"]
    assert loop["found"] >= 28
    assert loop["share"] <= 0.1
    assert {row["share"] for row in others if row["strategy"] == "20 in full"} == {1}


def test_a_loop_that_finds_less_or_takes_more_is_reported() -> None:
    """Each half of the bar has a sentence."""
    loop = {"strategy": "loop", "found": 27, "share": 0.11}
    assert missed(loop) == [
        "loop: 27 tasks found, at least 28",
        "loop: costs 0.110 of 20 in full, at most 0.1",
    ]
    assert missed(loop | {"found": 28, "share": 0.1}) == []
