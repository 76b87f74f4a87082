"""The FTS5 expressions that a query becomes."""

import pytest

from memsvc.adapters.sqlite.fulltext.match import (
    MAX_CLAUSES,
    clauses,
    exclusions,
    expression,
    match,
    token_sequence,
)
from memsvc.core.query import NO_QUERY, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "worker-service.ts",
            ['"worker"', '"service"', '"ts"', '"workerservice"', '"worker service ts"'],
        ),
        ("src/a.py", ['"src"', '"py"']),
        ("a1b2c3d", ['"a1b2c3d"', '"a1b2c3d"*']),
        ("a1b2c3d4e", ['"a1b2c3d4e"', '"a1b2c3d4e"*', '"a1b2c3d"', '"a1b2c3d4"']),
        ("v1.20", ['"1"', '"20"', '"1 20"']),
        ("getUserBy", ['"getuserby"', '"get user by"', '"getuser"', '"userby"']),
        ("C++ build", ['"cplusplus"', '"build"']),
        ("C code", ['"c"', '"code"']),
        (".NET", ['"dotnet"', '"net"']),
        ("🎉 party", ['"emoji1f3890"', '"party"']),
        ("库", ['"库"']),
        ("数据库", ['"数据"', '"据库"']),
        ("Redis连接", ['"Redis"', '"连接"']),
        ("ÉCOLE", ['"ÉCOLE"', '"é cole"']),
        ("foo-Bar*", ['"foo bar"*']),
        ("连接*", ['"连接"']),
        ("the lock", ['"lock"']),
        ("the", ['"the"']),
        ("lock Lock LOCK", ['"lock"']),
        ('"a phrase" title:word -not', []),
    ],
)
def test_plain_words_are_searched_by_their_words_and_as_a_whole(
    text: str, expected: list[str]
) -> None:
    assert clauses(parse(text)) == tuple(expected)


def test_only_so_many_expressions_are_searched() -> None:
    words = [f"one{number}Two" for number in range(60)]
    found = clauses(parse(" ".join(words)))
    assert len(found) == MAX_CLAUSES == 128
    assert found[0] == '"one0two"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Fix "the Lock" 数据库', ["fix", "数据", "据库", "the", "lock"]),
        ("title:Word Redis连接 -not", ["Redis", "连接", "word"]),
        ("type:bugfix", []),
    ],
)
def test_the_tokens_of_words_come_before_those_of_phrases(text: str, expected: list[str]) -> None:
    assert token_sequence(parse(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserById", '"getUserById"'),
        ('"two Words*"', '"two Words"'),
        ("C++", '"C" AND "cplusplus"'),
        ("title:C++", 'title : "C" AND "cplusplus"'),
        ("title:pay*", 'title : ("pay"* OR "paye"*)'),
        ("title:连接", '"连接"'),
        ("数据库", 'parts : "数据 据库"'),
        ("Redis连接", 'parts : "redis 连接"'),
        ('"lock 数据库"', '"lock" AND parts : "数据 据库"'),
        ("🎉", '"emoji1f3890"'),
        ("Co*", '"co"*'),
        ("Éa*", '"Éa"*'),
        ("foo-Bar*", '"foo bar"*'),
        ("test*", '"test"*'),
        ("tests*", '"tests"*'),
        ("testing*", '"testing"*'),
        ("implementat*", '("implementat"* OR "implement" OR "implementa")'),
        ("a-implementat*", '("a implementat"* OR "a implement" OR "a implementa")'),
        ("payday*", '("payday"* OR "paydaye"* OR "payda")'),
    ],
)
def test_what_must_match_is_one_expression(text: str, expected: str) -> None:
    query = parse(text)
    (term,) = (*query.words, *query.required)
    assert expression(term) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lock", '("lock")'),
        ("lock getUser", '("lock" OR "getuser" OR ("get user"))'),
        ('"a lock"', '("a lock")'),
        ('retry "a lock" title:b', '("a lock") AND (title : "b") AND ("retry" OR {0})'),
        ("lock -cache", '(("lock")) NOT ("cache")'),
        ("-cache", ""),
        ("", ""),
    ],
)
def test_words_are_alternatives_and_what_is_required_must_match(text: str, expected: str) -> None:
    query = parse(text)
    both = '("a lock") OR (title : "b")'
    assert match(query, clauses(query)) == expected.format(both)


def test_tags_of_a_group_are_alternatives_and_every_group_must_hold() -> None:
    assert match(NO_QUERY, tags=[["a0", "b0"], ["c0"]]) == (
        '(tags : ("a0" OR "b0")) AND (tags : ("c0"))'
    )


def test_exclusions_are_words_phrases_files_and_tags() -> None:
    query = parse('lock -cache -"two words" -type:a,b -file:src/x -title:old')
    unwanted = (
        '"cache" OR ("two words") OR ("src x") OR ({} : "old")'
        ' OR (tags : "typeza0") OR (tags : "typezb0")'
    )
    assert exclusions(query) == unwanted.format("title")
    assert exclusions(query, "request") == unwanted.format("request")
    assert match(query, ['"lock"'], title="request") == (
        f'(("lock")) NOT ({unwanted.format("request")})'
    )
    assert exclusions(parse("lock")) == ""
