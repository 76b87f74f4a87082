"""What hypothesis draws: texts as people and programs send them, requests, records."""

import string

from hypothesis import strategies as st

from memsvc.model import Observation, Prompt, Record, Summary

WORDS = [
    "payment",
    "retry",
    "ledger",
    "checkout",
    "worker",
    "cache",
    "parser",
    "timeout",
    "token",
    "guide",
    "登录",
    "令牌",
    "getUserById",
    "SessionStore",
    "snake_case",
    "café",
]

words = st.sampled_from(WORDS)
sentences = st.lists(words, min_size=1, max_size=12).map(" ".join)
paths = st.builds(
    lambda folders, name: "/".join([*folders, name]),
    st.lists(st.sampled_from(["src", "docs", "a b", "100%_x", "深い"]), max_size=3),
    st.sampled_from(["main.py", "README.md", "x_y.ts", "*.c"]),
)

operators = st.sampled_from(
    [
        *("AND", "OR", "NOT", "NEAR", "title:", "file:", "type:", "concept:", "project:", "C++"),
        *('"', "'", "*", "-", "+", "(", ")", "^", ":", "{", "}", "\x00", "\\", "%", "_", ";"),
        *("--", "\n", "🚀"),
    ]
)
symbols = st.text(string.printable, max_size=12)
anything = st.text(max_size=30)
pieces = st.one_of(words, operators, symbols, anything)
queries = st.builds(
    lambda parts, glue: glue.join(parts),
    st.lists(pieces, min_size=1, max_size=8),
    st.sampled_from([" ", "", "-", "/"]),
)
"""Queries with everything in them that has ever broken a search."""

plain_queries = st.lists(words, min_size=1, max_size=6).map(" ".join)

texts = st.one_of(
    sentences, st.text(max_size=60), st.just("字" * 3000), st.just("long line " * 800)
)
names = st.lists(st.one_of(words, st.text(min_size=1, max_size=8)), max_size=4).map(tuple)
moments = st.integers(1_700_000_000_000, 1_794_000_000_000)
projects = st.sampled_from(["api", "shop", "Docs", ""])


def _identified(
    record: type[Record], **fields: st.SearchStrategy[object]
) -> st.SearchStrategy[Record]:
    return st.builds(
        record,
        source=st.just("made"),
        source_id=st.integers(1, 8).map(str),
        created_at_epoch=moments,
        project=projects,
        session_id=st.sampled_from(["s1", "s2", ""]),
        **fields,
    )


observations = _identified(
    Observation,
    title=texts.filter(bool),
    narrative=texts,
    facts=st.lists(texts, max_size=3).map(tuple),
    type=st.sampled_from(["bugfix", "Bugfix", "decision", "odd type"]),
    concepts=names,
    files_read=st.lists(paths, max_size=3).map(tuple),
)
summaries = _identified(
    Summary, request=texts.filter(bool), files_edited=st.lists(paths, max_size=2).map(tuple)
)
prompts = _identified(Prompt, prompt_text=texts.filter(bool))
records = st.one_of(observations, summaries, prompts)
"""Records of few sources, so that writes meet what is there already."""
