"""Operators of FTS5 and SQL inside a query are words: each finds what its words find, no more."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from pages import get, refs_of
from samples import NOW, named, new_store, services_over

from memsvc.entrypoints.http.app import create_app

TITLES = (
    "alpha bravo",
    "bravo charlie",
    "charlie delta",
    "near match",
    "rowid rank bm25 highlight",
    "select union drop table insert delete update",
    "golf",
)
"""Record 1 has the first title, and so on. Of the operators, none is "and", "or" or "not", which
say too little to search for.
"""

PAIRS = (("alpha", "delta"), ("golf", "charlie"), ("alpha", "nowhere"))

TEMPLATES = (
    *("{} AND {}", "{} OR {}", "{} NOT {}", "({} {})", "({} OR {}) AND NOT {}", "NEAR({} {}, 3)"),
    *("NEAR({} {})", "{{title}} : {} {}", "{{title narrative}}:{} {}", "^{} {}", "{} + {}"),
    *("{}^2 {}", "{} {}^", "+{} +{}", "{} & {}", "{} | {}", "{} || {}", "!{} {}", "~{} ~{}"),
    *("{}~2 {}", "{}?{}", "[{} TO {}]", "{{{} TO {}}}", "{}/{}", "/{}.{}/", "{}; {}", "{}, {}"),
    *("{} \\ {}", "{}\t{}", "{}\r\n{}", "{}\x0b{}", "{}\u2028{}", "{}=1 {}", "<{}> <{}>"),
    *("${} ${}", "@{} @{}", "?1 {} {}", ":x {} {}", "{}') OR 1=1 -- {}", "{}; DROP TABLE {}"),
    *("{}') UNION SELECT * FROM {}", "1=1; DELETE FROM {} {}", "{} MATCH {}", "{} bm25({})"),
    *("highlight({}, 0, {})", "rowid = {} {}", "{} ' {}", "{} '' {}", "{} ` {}", "{} % {}"),
    *("{} AND", "AND {}", "OR {} OR", "NOT {}", "NEAR {}", "({}", "{})", "(({}", "{}]", "[{}"),
    *("{{{}", "{}}}", "{} AND AND AND", "AND OR NOT {}", "'{}", "{}'", "{};", ";{}", "{}--"),
    *("/* {} */", "{}/*", "{}\x00", "{}%00", "{}%27", "{}&query={}", "{}#{}", "{}\\", "\\{}"),
)


def found_by_words(query: str) -> set[str]:
    """The refs of the titles with any word of a query, found by splitting both at every symbol."""
    words = set(re.findall(r"[a-z0-9]+", query.lower()))
    return {str(at) for at, title in enumerate(TITLES, 1) if words & set(title.split())}


CASES = {
    template.format(*pair, *pair): None
    for template in TEMPLATES
    for pair in (PAIRS if template.count("{}") > 1 else PAIRS[:1])
}


@pytest.fixture(scope="module")
def titles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """The routes over one observation for each title."""
    path: Path = tmp_path_factory.mktemp("titles") / "memsvc.db"
    store = new_store(path)
    store.write(named(title, NOW) for title in TITLES)
    yield create_app(services_over(store)).test_client()
    store.close()


@pytest.mark.parametrize("query", CASES, ids=ascii)
def test_an_operator_is_a_word(titles: FlaskClient, query: str) -> None:
    page = get(titles, "/api/search/observations", query=query)
    assert set(refs_of(page)) == found_by_words(query)
    assert get(titles, "/api/stats")["kinds"]["observations"] == len(TITLES)


OURS = {
    '"alpha bravo"': {"1"},
    '"bravo alpha"': set(),
    '"alpha" OR "golf"': set(),
    '"alpha bravo': {"1", "2"},
    'alpha"': {"1"},
    '"': set(),
    '""': set(),
    '"""': set(),
    '"" OR 1=1': set(),
    '"alpha" -bravo': set(),
    "bravo -alpha": {"2"},
    "bravo -(alpha)": {"1", "2"},
    "bravo - alpha": {"1", "2"},
    "--alpha": {"1"},
    "alp*": {"1"},
    "*": set(),
    "**": set(),
    "*lpha": set(),
    "al*ha": set(),
    "title:alpha": {"1"},
    "title:title:alpha": set(),
    "rowid:1": {"5"},
    "rank:alpha": {"1", "5"},
    "observations_fts:alpha": {"1"},
    "narrative:alpha": {"1"},
    "type:bugfix' OR '1'='1": set(),
    "project:%": set(),
    "project:_": set(),
    "concept:*": set(),
    "file:%": set(),
    "file:../../etc/passwd": set(),
}
"""What the query language makes of symbols that it knows itself."""


@pytest.mark.parametrize("query", OURS, ids=ascii)
def test_a_symbol_of_the_query_language_keeps_to_its_meaning(
    titles: FlaskClient, query: str
) -> None:
    page = get(titles, "/api/search/observations", query=query)
    assert set(refs_of(page)) == OURS[query]
