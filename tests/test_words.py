"""What the search column and the filter tokens hold."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.adapters.sqlite.fulltext.index_words import index_subwords, tag
from memsvc.core import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserById", "get user by id"),
        ("HTTPServer", "http server"),
        ("parseHTTPRequest", "parse http request"),
        ("SessionStoreV2", "session store v 2"),
        ("v5.4.0", "v 5 4 0"),
        ("TS2345", "ts 2345"),
        ("修复登录", "修复 复登 登录"),
        ("Redis连接池", "redis 连接 接池"),
        ("파일명", "파일 일명"),
    ],
)
def test_parts_of_one_word_stand_in_their_order(text: str, expected: str) -> None:
    assert expected in index_subwords(text).split("\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SessionStoreV2", "sessionstore"),
        ("worker-service.ts", "workerservice"),
        ("MAX_RETRY_COUNT", "maxretry"),
        ("C++ build", "cplusplus"),
        ("in C#.", "csharp"),
        (".NET 8", "dotnet"),
        ("read .env", "dotenv"),
        ("🎉", "emoji1f3890"),
        ("库", "库"),
    ],
)
def test_what_the_tokenizer_loses_becomes_a_word(text: str, expected: str) -> None:
    assert expected in index_subwords(text).split()


@pytest.mark.parametrize("text", ["plain words only", "issue#12", "end. Start", "1+1", "", "5.4"])
def test_words_that_the_tokenizer_finds_are_not_repeated(text: str) -> None:
    assert index_subwords(text) == ""


def test_repeated_identifiers_come_once() -> None:
    assert index_subwords("getUser getUser getUser") == index_subwords("getUser")


def test_composed_and_decomposed_accents_have_the_same_parts() -> None:
    assert index_subwords("caf\u00e9Bar") == index_subwords("cafe\u0301Bar")


@given(st.text())
def test_any_text_has_lower_case_parts(text: str) -> None:
    assert index_subwords(text) == index_subwords(text).lower()


def test_tags_can_be_read() -> None:
    assert tag("type", "bugfix") == "typezbugfix0"


def test_tags_ignore_case() -> None:
    assert tag("concept", "How-It-Works") == tag("concept", "how-it-works")


@given(st.text(), st.text())
def test_different_values_have_different_tags(one: str, other: str) -> None:
    same = words.composed(one).casefold() == words.composed(other).casefold()
    assert (tag("type", one) == tag("type", other)) == same


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
def test_a_tag_is_one_token_that_the_stemmer_leaves_alone(value: str) -> None:
    with sqlite3.connect(":memory:") as memory:
        memory.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61')")
        memory.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, row)")
        memory.execute("INSERT INTO t VALUES (?)", (tag("project", value),))
        assert memory.execute("SELECT term FROM v").fetchall() == [(tag("project", value),)]
    memory.close()


def test_stop_words_are_single_lower_case_tokens() -> None:
    assert words.STOP_WORDS
    for word in words.STOP_WORDS:
        assert words.tokens(word) == [word] == [word.lower()]


@pytest.mark.parametrize("text", ["What is", "don't", "isn't", "I'm", "we've", "you'll", "he'd"])
def test_english_function_words_and_their_short_forms_hold_stop_words_only(text: str) -> None:
    assert {token.lower() for token in words.tokens(text)} <= words.STOP_WORDS


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("C++ c# F# .NET", ["cplusplus", "csharp", "fsharp", "dotnet"]),
        ("x++", ["xplusplus"]),
        ("see (.env)", ["dotenv"]),
        ("naïve 🎉🚀", ["emoji1f3890", "emoji1f6800"]),
        ("a.NET C#x xC++ 1++ é", []),
    ],
)
def test_symbols_have_names(text: str, names: list[str]) -> None:
    assert words.symbols(text) == names


@pytest.mark.parametrize(
    ("token", "pieces"),
    [
        ("SessionStoreV2", ["session", "store", "v", "2"]),
        ("HTTPServer", ["http", "server"]),
        ("MAX_RETRY", ["max", "retry"]),
        ("Größe", ["größe"]),
        ("getÜber", ["getüber"]),
        ("Redis连接池X", ["redis", "连接", "接池", "x"]),
        ("库", ["库"]),
    ],
)
def test_a_token_is_split_where_its_script_or_case_changes(token: str, pieces: list[str]) -> None:
    assert words.split_token(token) == pieces


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("SessionStoreV2", ["sessionstore", "storev", "v2"]),
        ("worker-service.ts", ["workerservice"]),
        ("a1-2", ["a1"]),
        ("12-34", []),
        ("getUser", []),
        ("user_id and user_id", ["userid"]),
        ("连接-Pool_size", ["poolsize"]),
        ("plain Words", []),
    ],
)
def test_neighbouring_subwords_are_joined_unless_that_is_the_word_itself(
    text: str, joined: list[str]
) -> None:
    assert list(words.joined_neighbours(text)) == joined


@pytest.mark.parametrize(
    ("word", "compound"),
    [
        *((word, False) for word in ("plain", "Plain")),
        *((word, True) for word in ("PLAIN", "getUser", "aBcd", "a1", "größe", "a-b", "a")),
    ],
)
def test_few_words_may_have_subwords(word: str, compound: bool) -> None:
    assert words.is_compound(word) is compound


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Fix: a_b c-d", ["Fix", "a", "b", "c", "d"]),
        ("cafe\u0301", ["caf\u00e9"]),
        ("\u212be\u0301x\u212b", ["\u212b\u00e9x\u212b"]),
        ("...", []),
    ],
)
def test_tokens_are_runs_of_letters_and_digits_with_composed_accents(
    text: str, tokens: list[str]
) -> None:
    assert words.tokens(text) == tokens
    assert words.is_searchable(text) is bool(tokens)


def test_runs_of_cjk_are_told_from_others() -> None:
    assert words.script_runs("Redis连接pool") == ["Redis", "连接", "pool"]
    assert words.cjk_runs("Redis连接 pool 池") == ["连接", "池"]
    assert (words.has_cjk("a连"), words.has_cjk("é")) == (True, False)
