"""The type of a commit: what its prefix says, or else what its subject says in words."""

import re
from typing import Final

from memsvc.core.ranking.subjects import without_prefix

_PREFIX = re.compile(r"(\w+)(?:\([^)]*\))?!?:\s")
_TYPE_OF_PREFIX: Final = {
    "feat": "feature",
    "feature": "feature",
    "fix": "bugfix",
    "bugfix": "bugfix",
    "hotfix": "bugfix",
    "refactor": "refactor",
    "style": "refactor",
    "perf": "change",
    "docs": "change",
    "test": "change",
    "tests": "change",
    "chore": "change",
    "build": "change",
    "ci": "change",
    "revert": "change",
}
_SETTLED: Final = frozenset({"feat", "feature", "fix", "bugfix", "hotfix", "docs"})
"""Prefixes that settle the type: a fix that replaces something is still a fix."""

_CODE: Final = frozenset({"refactor", "style", "perf", "test", "tests"})
"""Prefixes of work on the code itself, where one call used instead of another is no decision."""

_NAME: Final = r"[`'\"]?[A-Za-z0-9+-]+[`'\"]?"
"""The name of a tool, a format, a command; a name of code has dots, underscores or brackets."""

_GIVEN_UP: Final = "(?:drop(?:s|ped|ping)?|remov(?:e[sd]?|ing))"
_DECISION: Final = re.compile(
    rf"""(?:(?:we\ )?(?:decide[sd]?|chose|settled?\ on|opt(?:ed)?\ for|standardi[sz]e[sd]?\ on)
    |(?:switch|migrat|mov|go|went|revert|return)(?:e[sd]?|ed|es|ing)?\ (?:back\ )?to
    |(?:switch|migrat)(?:e[sd]?|ed|es|ing)?\ (?:{_NAME}\ )?(?:from\ (?:{_NAME}\ )+)?to
    |adopt(?:s|ed|ing)?
    |deprecat(?:e[sd]?|ing)|mark\w*\ .*\bdeprecated
    |{_GIVEN_UP}\ (?:.*\ )?(?:support|compat\w*)\ (?:for|of|with)|{_GIVEN_UP}\ .*\bin\ favou?r\ of
    |drop(?:s|ped|ping)?\ (?:.*\b(?:support|dependency|because)
        |(?-i:[A-Z])[\w+#.-]*(?:[ ,]|and|<?=?\d[\w.]*)*$)
    |(?:no\ longer|stop(?:s|ped)?)\ (?:us|support|ship|requir|rely|depend)\w*
    |(?:do\ not|don't)\ (?:use|support|remove|require)\b.*\bbecause
    |(?:prefer|choos)\w*\ .*\bover)(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)
_INSTEAD: Final = re.compile(
    rf"""(?:(?:us|prefer|choos|rely\ on|go\ with|stick\ (?:to|with)|keep)\w*\ {_NAME}
        \ (?:instead\ of|rather\ than|over|in\ favou?r\ of)\ {_NAME}
    |replac(?:e[sd]?|ing)\ {_NAME}\ (?:with|by)\ {_NAME})(?=\ \W|\ (?:for|in|to)\b|\.?$)""",
    re.IGNORECASE | re.VERBOSE,
)
"""What a subject begins with that says what is used, kept or given up from now on."""

_TYPE_OF_WORDING: Final = (
    ("bugfix", re.compile(r"\b(fix(e[sd]|ing)?|bug|crash(e[sd])?|regression|hotfix)\b", re.I)),
    ("refactor", re.compile(r"\b(refactor\w*|rename\w*|clean\w*|simplif\w*)\b", re.I)),
    ("feature", re.compile(r"\b(add(s|ed)?|implement\w*|introduc\w*)\b", re.I)),
)


def commit_type(subject: str) -> str:
    """The observation type of a commit, from its subject."""
    found = _PREFIX.match(subject)
    prefix = found[1].lower() if found else ""
    if prefix not in _SETTLED and _is_decision(without_prefix(subject), prefix in _CODE):
        return "decision"
    wording = (kind for kind, pattern in _TYPE_OF_WORDING if pattern.search(subject))
    return _TYPE_OF_PREFIX.get(prefix) or next(wording, "change")


def _is_decision(subject: str, on_code: bool) -> bool:
    return bool(_DECISION.match(subject) or (not on_code and _INSTEAD.match(subject)))
