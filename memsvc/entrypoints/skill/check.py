"""Checks a skill against the Agent Skills specification and its token budgets."""

import re
from collections.abc import Iterator
from pathlib import Path

from memsvc.core.tokens import count_tokens

MAX_PAGE_TOKENS, MAX_BODY_TOKENS, MAX_HEAD_TOKENS, MAX_TREE_TOKENS = 500, 900, 150, 6000
"""Limits in tokens: an operation page, the body of SKILL.md, name and description, all pages."""

MAX_PAGE_WORDS = 350

MAX_DESCRIPTION = 500
"""Characters of the description; the specification allows twice as many."""

KEYS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
"""Keys that the Agent Skills specification allows in the frontmatter."""


def check(root: Path) -> list[str]:
    """The faults of a skill, by the specification and by its token budgets."""
    page = root / "SKILL.md"
    text = _text(page) if page.is_file() else ""
    found = re.fullmatch(r"---\n(.*?)\n---\n(.*)", text, re.S)
    if not found:
        return [f"{page} is missing or has no frontmatter between --- lines"]
    head = dict(_frontmatter(found[1]))
    return [
        *_yaml_faults(found[1]),
        *_head_faults(root, head),
        *_size_faults(root, head, found[2]),
        *_link_faults(root),
    ]


def _frontmatter(block: str) -> Iterator[tuple[str, str]]:
    """Keys and values; indented lines belong to the key above, as in metadata."""
    for line in block.splitlines():
        if line.strip() and not line.startswith((" ", "\t")):
            name, _, value = line.partition(":")
            yield name.strip(), value.strip().strip("\"'")


def _yaml_faults(block: str) -> Iterator[str]:
    """Lines that YAML reads differently from what they look like."""
    names = [name for name, _ in _frontmatter(block)]
    yield from (f"frontmatter key {n!r} is given twice" for n in set(names) if names.count(n) > 1)
    for line in block.splitlines():
        name, colon, value = line.strip().partition(":")
        plain = not re.fullmatch(r"\s*('[^']*'|\"[^\"\\]*\")\s*", value)
        if line.strip() and not (colon and re.match(r"\s|$", value)):
            yield f"frontmatter line {line.strip()[:40]!r} is not `key: value`"
        elif plain and re.search(r":\s|\s#|^\s*[\[\]{}&*!|>'\"%@`,?#-]", value):
            yield f"the frontmatter value of {name!r} has a special meaning in YAML; quote it"


def _head_faults(root: Path, head: dict[str, str]) -> Iterator[str]:
    name, description = head.get("name", ""), head.get("description", "")
    yield from (f"frontmatter key {key!r} is not allowed" for key in sorted(head.keys() - KEYS))
    if name != root.name:
        yield f"name {name!r} differs from the folder {root.name!r}"
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) or len(name) > 64:
        yield f"name {name!r}; allowed: 1-64 lowercase letters, digits and single hyphens"
    if not 1 <= len(description) <= MAX_DESCRIPTION or re.search("[<>]", description):
        allowed = f"1-{MAX_DESCRIPTION}, without < and >"
        yield f"description has {len(description)} characters; allowed: {allowed}"
    if "compatibility" in head and not 1 <= len(head["compatibility"]) <= 500:
        yield f"compatibility has {len(head['compatibility'])} characters; allowed: 1-500"
    if head.get("metadata"):
        yield "metadata is not a mapping of keys to values"


def _size_faults(root: Path, head: dict[str, str], body: str) -> Iterator[str]:
    start = count_tokens(f"{head.get('name')}: {head.get('description')}")
    yield from _over("name and description", start, MAX_HEAD_TOKENS)
    yield from _over("body of SKILL.md", count_tokens(body), MAX_BODY_TOKENS)
    yield from _over("all pages", sum(sizes_of(root).values()), MAX_TREE_TOKENS)
    if not body.strip():
        yield "SKILL.md is empty below its frontmatter"
    for place, tokens in sizes_of(root).items():
        if place != "SKILL.md":
            yield from _over(place, tokens, MAX_PAGE_TOKENS)
            yield from _over(place, len(_text(root / place).split()), MAX_PAGE_WORDS, "words")


def _over(what: str, size: int, allowed: int, unit: str = "tokens") -> Iterator[str]:
    if size > allowed:
        yield f"{what}: {size} {unit}; allowed: {allowed}"


def _link_faults(root: Path) -> Iterator[str]:
    root = root.resolve()
    linked = {root / "SKILL.md"}
    for page in _markdown(root):
        place = page.relative_to(root)
        if len(place.parts) > 2:
            yield f"{place} is nested more than one folder deep"
        for link in _links(page):
            target = (page.parent / link).resolve()
            linked |= {target} if page.name == "SKILL.md" else set()
            if not target.is_relative_to(root):
                yield f"{place} links to {link}, which is outside the skill"
            elif not target.exists():
                yield f"{place} links to {link}, which does not exist"
    missed = [page for page in _markdown(root) if page.resolve() not in linked]
    yield from (f"SKILL.md does not link to {page.relative_to(root)}" for page in missed)


def _links(page: Path) -> list[str]:
    """The targets of a page's links, without those to other sites."""
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", _text(page))
    return [link for link in links if "://" not in link and not link.startswith("mailto:")]


def _markdown(root: Path) -> list[Path]:
    return sorted(root.rglob("*.md"))


def _text(page: Path) -> str:
    return page.read_text("utf-8", "replace")


def sizes_of(root: Path) -> dict[str, int]:
    """The tokens of each page of a skill."""
    return {p.relative_to(root).as_posix(): count_tokens(_text(p)) for p in _markdown(root)}
