"""What hypothesis draws: texts as people and programs send them, requests, records, calls."""

import string

from hypothesis import strategies as st

from memsvc.api.mcp_tools import FIXED_PARAMETERS
from memsvc.api.operation import Operation
from memsvc.api.parameter_facts import Parameter, parameters_of
from memsvc.core.records import Kind, Observation, Prompt, Record, Summary

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

VALUES: dict[str, st.SearchStrategy[object]] = {
    "query": st.one_of(plain_queries, queries, st.sampled_from(["double charge", "webhook", ""])),
    "anchor": st.sampled_from(["87", "#52", "S3", "P9", "2026-10-13", "9999", "7d", "soon", 51]),
    "ids": st.lists(
        st.sampled_from(["87", "#52", "S3", "P9", "12,13", "9999", "x", 51]), min_size=1
    ),
    "project": st.lists(st.sampled_from(["shop-api", "infra", "none such"]), max_size=2),
    "type": st.lists(st.sampled_from(["bugfix", "decision,feature", "none such"]), max_size=2),
    "concepts": st.one_of(st.lists(st.just("gotcha"), max_size=1), st.just("pattern,trade-off")),
    "files": st.lists(st.sampled_from(["src/payments", "*.ts", "a, b", " "]), max_size=2),
    "kinds": st.lists(st.sampled_from([*Kind, "observation,prompt", "memory"]), max_size=2),
    "also": st.lists(st.sampled_from(["billed twice", "a, b", " ", "type:x", "-x"]), max_size=7),
    "explain": st.one_of(st.booleans(), st.sampled_from(["0", "1", "yes"])),
    "dateStart": st.sampled_from(["2026-10-13", "7d", "6mo", 1_790_000_000, "2026-13-45"]),
    "dateEnd": st.sampled_from(["2026-10-13", "1d", 1_790_000_000_000, "never"]),
    "days": st.one_of(st.integers(-1, 400), st.sampled_from(["all", "many"])),
}
"""What a model may send for a parameter that is no plain number or choice; some of it is wrong."""


def arguments(operation: Operation) -> st.SearchStrategy[dict[str, object]]:
    """The arguments of a call of a tool: what is required, and any of the rest, null at times."""
    found = parameters_of(operation.schema.fields)
    offered = [each for each in found if each.name not in FIXED_PARAMETERS]
    drawn = {each.name: _values(each) for each in offered}
    required = {each.name: drawn.pop(each.name) for each in offered if each.required}
    optional = {name: st.one_of(values, st.none()) for name, values in drawn.items()}
    return st.fixed_dictionaries(required, optional=optional)


def _values(parameter: Parameter) -> st.SearchStrategy[object]:
    if parameter.name in VALUES:
        return VALUES[parameter.name]
    if parameter.allowed:
        return st.sampled_from([*parameter.allowed, "none such"])
    assert parameter.bounds
    low, high = parameter.bounds
    return st.one_of(st.integers(low, min(high, 500)), st.sampled_from([low - 1, high + 1, "x"]))
