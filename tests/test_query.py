"""What people type, and what becomes of it."""

import contextlib
import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.adapters.sqlite.fulltext.index_words import index_subwords, tag
from memsvc.adapters.sqlite.fulltext.match import MAX_CLAUSES, clauses, expression, match
from memsvc.core.query import (
    MAX_LENGTH,
    MAX_TERM_LENGTH,
    MAX_TERMS,
    Query,
    Term,
    parse,
    plain_text,
)
from memsvc.core.words import is_searchable

ANY_TEXT = st.text() | st.text(st.characters(codec="utf-16", categories=["Cs", "Lu", "Cc"]))
FRAGMENTS = [
    *(
        '"',
        "-",
        "*",
        ":",
        "(",
        "{",
        "^",
        "'",
        "\\",
        " ",
        "\x00",
        "\ud800",
        "title:",
        "type:",
        "file:",
    ),
    *("AND", "NOT", "NEAR(", "word", "foo-bar", "C++", "库", "é", "🎉"),
]
QUERYISH = st.lists(st.sampled_from(FRAGMENTS)).map("".join)
# SQLite knows the characters of Unicode 6.1; the blocks here have hardly grown since.
TITLES = st.text(
    st.characters(max_codepoint=0x500, categories=["L", "N", "P", "S", "Z"])
    | st.characters(min_codepoint=0x3041, max_codepoint=0x3096)
    | st.characters(min_codepoint=0x4E00, max_codepoint=0x9FCC)
    | st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3)
)


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE t USING fts5(title, narrative, files, parts, tags,"
            " tokenize='porter unicode61 remove_diacritics 2')"
        )
        yield connection


def finds(index: sqlite3.Connection, text: str, query: str) -> bool:
    """Whether a record with this title is found."""
    parsed = parse(query)
    index.execute("DELETE FROM t")
    index.execute("INSERT INTO t(title, parts) VALUES (?, ?)", (text, index_subwords(text)))
    expression = match(parsed, clauses(parsed))
    return bool(index.execute("SELECT 1 FROM t WHERE t MATCH ?", (expression,)).fetchone())


def word_texts(query: Query) -> list[str]:
    return [term.text for term in query.words]


def test_plain_words_are_alternatives() -> None:
    query = parse("sqlite lock")
    assert query == Query(words=(Term("sqlite"), Term("lock")))
    assert match(query, clauses(query)) == '("sqlite" OR "lock")'


def test_a_quotation_must_stand_as_such() -> None:
    query = parse('"database is locked" retry')
    assert query.required == (Term("database is locked", phrase=True),)
    assert word_texts(query) == ["retry"]


@pytest.mark.parametrize("text", ["-retry", '-"two words"', "-title:retry", "-file:a.py", "-日本"])
def test_a_dash_excludes(text: str) -> None:
    assert len(parse(text).excluded) == 1
    assert parse(text).only_excludes


def test_a_dash_before_a_filter_excludes_its_values() -> None:
    query = parse("-type:bugfix,Change")
    assert query.excluded_filters == (("type", ("bugfix", "Change")),)
    query = parse("word -type:Change")
    expression_ = match(query, clauses(query))
    assert f'tags : "{tag("type", "change")}"' in expression_.partition(" NOT ")[2]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "-v",
            "--force",
            "-c/--config",
            "-",
            "--",
            "a-b",
            "src/main.py",
            "don't",
            "v5.4.0",
            "C++",
        ),
        *("AND", "OR", "NOT", "NEAR", "CLAUDE.md", '{"key":1}', "a@b.com", "title:", "http://x"),
    ],
)
def test_everything_else_is_literal(text: str) -> None:
    assert parse(text) == Query(words=parse(text).words)


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("file:src/a.py", "file", ("src/a.py",)),
        ("type:bugfix,feature", "type", ("bugfix", "feature")),
        ("Concept:gotcha concept:pattern", "concept", ("gotcha", "pattern")),
        ('project:"my app"', "project", ("my app",)),
    ],
)
def test_filters_are_set_apart(text: str, field: str, values: tuple[str, ...]) -> None:
    query = parse(f"{text} word")
    assert query.filters == ((field, values),)
    assert word_texts(query) == ["word"]


def test_a_filter_alone_is_not_searchable() -> None:
    assert not parse("type:bugfix").searchable


@pytest.mark.parametrize("text", ["", " ", "???", '"', '""', "*", "\x00", "\ud800", "- -"])
def test_text_without_a_word_asks_for_nothing(text: str) -> None:
    query = parse(text)
    assert not query.searchable
    assert not query.only_excludes
    assert match(query, clauses(query)) == ""


def test_stop_words_count_only_where_there_is_nothing_else() -> None:
    assert clauses(parse("how does the lock work")) == ('"lock"', '"work"')
    assert clauses(parse("to be or not to be")) == ('"to"', '"be"', '"or"', '"not"')


def test_terms_beyond_the_bound_are_counted() -> None:
    query = parse(" ".join(f"word{number}" for number in range(MAX_TERMS + 3)))
    assert len(query.words) == MAX_TERMS
    assert query.ignored == 3


def test_a_repeated_word_is_one_term() -> None:
    assert parse("lock lock lock") == parse("lock")


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("getUserById returns null", "getUser"),
        ("getUserById returns null", "getUserBy"),
        ("getUserById returns null", "get_user"),
        ("getUserById returns null", "user"),
        ("SessionStoreV2", "SessionStore"),
        ("snake_case_name", "snakeCaseName"),
        ("worker-service.ts starts", "WorkerService"),
        ("src/main.py", "main.py"),
        ("upgrade to v5.4.0", '"5.4.0"'),
        ("keep-alive", "keepalive"),
        ("keepalive", "keep-alive"),
        ("Fixed ECONNREFUSED", "econnrefused"),
        ("crème brûlée", "creme"),
        ("implementation", "implementat*"),
        ("authentication", "authenti*"),
        ("authentication", "auth*"),
        ("数据库连接池大小", "连接池"),
        ("数据库连接池大小", "库"),
        ("数据库连接池大小", '"连接池"'),
        ("文字コードShift_JISのCSV", "csv"),
        ("한글 파일명을 고침", "파일명"),
        ("the C++ build", "C++"),
        ("Reaction 🎉 first", "🎉"),
    ],
)
def test_identifiers_and_cjk_words_are_found_by_whole_and_by_part(
    index: sqlite3.Connection, text: str, query: str
) -> None:
    assert finds(index, text, query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("a C extension", "C++"),
        ("lock the database", '"database lock"'),
        ("database lock", "database -lock"),
        ("数据库连接池大小", '"库大小"'),
        ("authority", "authent*"),
    ],
)
def test_what_was_not_asked_for_is_not_found(
    index: sqlite3.Connection, text: str, query: str
) -> None:
    assert not finds(index, text, query)


def test_required_terms_and_exclusions_hold_in_every_subset_of_words() -> None:
    query = parse('"a phrase" one two -three')
    rendered = match(query, ['"one"'], ['"two"'], tags=[["typezbugfix0", "typezchange0"]])
    assert rendered == (
        '(("a phrase") AND ("one" OR ("a phrase")) AND ("two" OR ("a phrase"))'
        ' AND (tags : ("typezbugfix0" OR "typezchange0"))) NOT ("three")'
    )


def test_title_terms_look_in_the_title_of_the_kind() -> None:
    assert match(parse("title:lock"), title="request") == '(request : "lock")'


@given(ANY_TEXT | QUERYISH)
def test_repeating_a_text_asks_for_nothing_more(text: str) -> None:
    unquoted = text.replace('"', " ")
    assert parse(f"{unquoted} " * 3) == parse(unquoted)


@given(ANY_TEXT | st.text("e\u0301\u0344<\u0338Å_+#.C🎉 "))
def test_a_text_holds_something_to_look_for_if_there_is_an_expression_for_it(text: str) -> None:
    assert is_searchable(text) is bool(expression(Term(text)))


@given(ANY_TEXT | QUERYISH)
def test_any_text_becomes_a_match_that_sqlite_accepts(index: sqlite3.Connection, text: str) -> None:
    query = parse(text)
    assert len(clauses(query)) <= MAX_CLAUSES
    expression = match(query, clauses(query), tags=[[tag("type", "bugfix")]])
    index.execute("SELECT rowid, bm25(t) FROM t WHERE t MATCH ?", (expression,)).fetchall()


@given(TITLES)
def test_any_single_word_of_a_title_finds_its_record(index: sqlite3.Connection, title: str) -> None:
    for word in title.split():
        if parse(word).words:
            assert finds(index, title, word)


@pytest.mark.parametrize(
    "text", ["a-" * 50_000, '" ' * 50_000, "x" * 100_000, '"' + "a " * 50_000 + '"', "连" * 100_000]
)
def test_a_huge_query_is_cut_down(index: sqlite3.Connection, text: str) -> None:
    query = parse(text)
    expression = match(query, clauses(query)) or '""'
    assert len(expression) < 20_000
    index.execute("SELECT rowid FROM t WHERE t MATCH ?", (expression,)).fetchall()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("implementat*", Query(words=(Term("implementat", prefix=True),))),
        ("a*b *", Query(words=(Term("a*b"),))),
        ('"two wor*"', Query(required=(Term("two wor*", phrase=True),))),
        ("TITLE:Lock", Query(required=(Term("Lock", title=True),))),
        ('title:"a lock"', Query(required=(Term("a lock", phrase=True, title=True),))),
        ("-title:pay*", Query(excluded=(Term("pay", prefix=True, title=True),))),
        ("-file:src/a.py", Query(excluded=(Term("src/a.py", phrase=True),))),
        ("-Project:Api", Query(excluded_filters=(("project", ("Api",)),))),
        ("type:a, type:,b,a", Query(filters=(("type", ("a", "b")),))),
        (
            "type:a file:b -type:c x",
            Query(
                words=(Term("x"),),
                filters=(("type", ("a",)), ("file", ("b",))),
                excluded_filters=(("type", ("c",)),),
            ),
        ),
        ("x" * 1_001, Query(words=(Term("x" * MAX_TERM_LENGTH),))),
    ],
)
def test_each_item_has_its_place(text: str, query: Query) -> None:
    assert parse(text) == query


def test_values_of_filters_count_as_terms() -> None:
    query = parse("type:" + ",".join(f"v{number}" for number in range(MAX_TERMS)) + " one two")
    assert (len(query.filters[0][1]), query.words, query.ignored) == (MAX_TERMS, (), 2)
    assert parse("one two").ignored == 0


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("fix the\x00lock", "fix the lock"),
        ('say "two words" now', "say two words now"),
        ("title:lock Title:key", "lock key"),
        ("type:bugfix lock -cache -file:x file:a.py key", "lock key"),
        ('type:bugfix -"two words"', ""),
        ("a " * MAX_LENGTH, ("a " * (MAX_LENGTH // 2)).strip()),
    ],
)
def test_what_is_embedded_is_the_text_without_filters_and_exclusions(text: str, plain: str) -> None:
    assert plain_text(text) == plain
