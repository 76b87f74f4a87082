"""Chores: releases, version bumps, formatting, typos. They fall behind what was done."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from memsvc.core.ports.store import Hit, Title
from memsvc.core.query import Query
from memsvc.core.ranking.subjects import MAX_SUBJECT, without_prefix, without_references
from memsvc.core.records import Ref
from memsvc.core.words import MAX_CACHED, tokens

CHORE_FACTOR: Final = 0.8
"""What the relevance of a chore is multiplied by, unless the query asks for chores."""

_VERSION: Final = r"v?\d+(?:\.\d+)+[\w.+-]*"
_TOOLS: Final = "(?:black|ruff|cog|prettier|isort|gofmt|rustfmt|clang-format|eslint|pre-commit)"
_KEPT: Final = r"""(?:(?:the|all|some|dev|docs?|python|node|npm|cargo|test|ci|lint|build)[ -])*
    (?:change[ ]?log(?:\.\w+)?|dependenc(?:y|ies)|requirements(?:\.\w+)?|deps|packages
    |lock[ ]?files?|[\w-]+[.-]lock(?:\.\w+)?|submodules?|pre-commit(?:\ (?:hooks|config))?)"""
_SLIPS: Final = r"""(?:(?:trailing\ )?whitespace|spelling|grammar|lint\w*|flake8|pep\ ?8|formatting
    |indentation)(?:\ (?:errors?|issues?|fix(?:es)?|mistakes?|warnings?|violations?))?"""
_PLACE: Final = r"(?:\ (?:in|on|of|from|for|and|with)\b.*|\ [`'\"(:].*)?"

_CHORES: Final = (
    # "Release 1.2", "Prepare for the next release", "1.2.3", "Start version 2.1"
    rf"""(?:(?:prepar\w+|cut|tag|start|begin|set|new|mark)\ )?(?:(?:for|the|next|a)\ )*
        (?:(?:dev|development|alpha|beta)\ )?(?:release|version)
        (?:\ (?:version\ )?{_VERSION}.*)?""",
    rf"{_VERSION}(?:\ release)?",
    # "Bump x from 1.0 to 2.0", "Bump version", "Update CHANGELOG", "Update dependencies"
    rf"""(?:bump|pin|upgrade|update)\w*\ .*
        \b(?:from\ ['"`]?v?\d\S*\ to\ ['"`]?v?\d\S*|to\ (?:[\w.-]+==)?['"`]?{_VERSION}['"`]?)
        (?:\ in\ \S+)?""",
    rf"bump\w*\ (?:(?:the\ )?(?:[\w.-]+\ )?(?:version|deps|dependencies)\b.*|{_VERSION})",
    rf"""(?:update|upgrade|bump|regenerate|refresh|merge|sync)\w*\ {_KEPT}
        (?:\ (?:from|for|to|in)\b.*)?""",
    # "Applied Black", "Ran cog", "Format code"
    rf"""(?:(?:ran|run|apply|applied)\ )?{_TOOLS}
        (?:\ (?:auto|fix|format)\w*|\ (?:again|on|to|over)\b.*)?""",
    rf"""(?:auto|re)?-?format\w*
        (?:\ (?:the|all|with|using|code|source|files?|tests?|docs|imports|{_TOOLS}))*""",
    # "Fix typo in docs", "typo: a -> b", "Fix lint errors", "Whitespace"
    rf"""(?:(?:fix|correct)\w*\ )?(?:(?:a|an|the|some|few|small|minor|another|more)\ )*typos?
        (?:\ (?:fix(?:es)?|errors?))?{_PLACE}""",
    rf"(?:fix|correct)\w*\ (?:(?:a|an|the|some|few|more)\ )*{_SLIPS}{_PLACE}|{_SLIPS}",
    # "Merge branch 'main'"; a merged pull request is named after what it does
    r"merge\ (?:(?:remote-tracking\ )?branch|tag)\ .*",
    r"pre-commit\ autoupdate",
)
_CHORE: Final = re.compile("|".join(f"(?:{each})" for each in _CHORES), re.IGNORECASE | re.VERBOSE)

_ASKING: Final = frozenset(
    """
    release releases released releasing version versions bump bumps bumped upgrade upgrades upgraded
    changelog dependency dependencies requirements deps lock typo typos spelling grammar whitespace
    lint linting format formats formatted formatting reformat black ruff cog prettier isort flake8
    pep8 merge merges merged chore chores
    """.split()  # noqa: SIM905 - a list of strings would take a screen
)
_ASKED_VERSION: Final = re.compile(rf"(?<![\w.]){_VERSION}", re.IGNORECASE)


@lru_cache(maxsize=MAX_CACHED)
def is_chore(title: str) -> bool:
    """Whether a title tells of nothing but a release, a version, formatting, a typo or a merge."""
    subject = without_references(without_prefix(without_references(title)))
    return len(subject) <= MAX_SUBJECT and _CHORE.fullmatch(subject) is not None


def asks_for_chores(query: Query) -> bool:
    """Whether a query asks for chores itself: `release`, `typo`, or a version."""
    texts = [term.text for term in (*query.words, *query.required)]
    asked = {token.lower() for text in texts for token in tokens(text)}
    return bool(asked & _ASKING) or any(map(_ASKED_VERSION.search, texts))


def put_behind(hits: Iterable[Hit], titles: Mapping[Ref, Title]) -> list[Hit]:
    """The same hits, the chores among them with less relevance."""
    return [_lowered(hit) if _is_one(titles.get(hit.ref)) else hit for hit in hits]


def _is_one(title: Title | None) -> bool:
    return title is not None and is_chore(title.text)


def _lowered(hit: Hit) -> Hit:
    return replace(hit, relevance=CHORE_FACTOR * hit.relevance)
