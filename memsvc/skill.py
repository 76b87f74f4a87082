"""The mem-search skill: its pages made from the table of operations, checked and installed."""

import re
import shlex
import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from memsvc.catalog import describe_parameter, example_path
from memsvc.operations import TEN, Operation
from memsvc.tokens import count_tokens

NAME = "mem-search"
ADDRESS = "http://127.0.0.1:37777"
PAGE_TOKENS, BODY_TOKENS, START_TOKENS, TREE_TOKENS = 500, 900, 150, 6000
"""Most tokens of an operation page, of SKILL.md's body, of name and description, of all pages."""

KEYS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
"""Keys that the Agent Skills specification allows in the frontmatter."""

AGENT_FOLDERS = (".claude", ".agents", ".codex", ".cursor", ".gemini", ".opencode")
"""Where agents look for `skills/`: the first always, the others where they are there already."""

SELDOM = ("render", "format", "offset", "orderBy", "dateStart", "dateEnd", "explain")
"""Parameters that every search takes and that one line tells of."""


def tree() -> Path:
    """The folder of the skill, in a checkout or in the installed package."""
    checkout = Path(__file__).parent.parent / "skills" / NAME
    return checkout if checkout.exists() else Path(str(resources.files("memsvc.skills"))) / NAME


def page_of(operation: Operation) -> str:
    """The page of one operation; its answer is filled in by whoever runs its command."""
    words = [f"memsvc {operation.command}", *_example_words(operation)]
    return f"""# {operation.name}

{operation.summary} Use it {operation.when}.

```bash
{" ".join(words)}
```

```text
```

By HTTP: `curl -s '{ADDRESS}{example_path(operation)}&render=text'`

{chr(10).join(_parameter_lines(operation))}

Cost: {operation.cost}. {_errors(operation)}
"""


def _example_words(operation: Operation) -> Iterator[str]:
    """The example's parameters as a command takes them: the argument bare, the rest as options."""
    for name, value in operation.example.items():
        yield shlex.quote(value) if name == operation.argument else f"--{name} {value}"


def _parameter_lines(operation: Operation) -> Iterator[str]:
    seldom = []
    for name, field in operation.schema.fields.items():
        described = describe_parameter(name, field)
        if name in SELDOM:
            seldom.append(f"`{name}`{_values(described)}")
        else:
            yield f"- `{name}`{_facts(described)}: {described['meaning']}"
    if seldom:
        yield f"- also {', '.join(seldom)}"


def _facts(described: dict[str, object]) -> str:
    facts = ["required"] if described["required"] else []
    if "default" in described and not isinstance(described["default"], list):
        facts.append(f"default {described['default']}")
    facts += [str(described["range"])] if "range" in described else []
    return f" ({', '.join(facts)})" if facts else ""


def _values(described: dict[str, object]) -> str:
    values = described.get("allowed")
    return f" ({'|'.join(values)})" if isinstance(values, list) else ""


def _errors(operation: Operation) -> str:
    said = {
        "bad_parameter": "A wrong parameter exits with 2 and names what is allowed.",
        "no_such_record": "A ref that is not there exits with 4.",
    }
    return " ".join(said[code] for code in operation.errors if code in said)


def pages() -> dict[str, str]:
    """Every generated page by its place in the tree."""
    return {f"operations/{operation.name}.md": page_of(operation) for operation in TEN}


def check(root: Path) -> list[str]:
    """What is wrong with a skill tree, by the specification and by its own budgets."""
    text = (root / "SKILL.md").read_text("utf-8") if (root / "SKILL.md").exists() else ""
    found = re.fullmatch(r"---\n(.*?)\n---\n(.*)", text, re.S)
    if not found:
        return [f"{root / 'SKILL.md'} is missing or has no frontmatter between --- lines"]
    head = dict(_frontmatter(found[1]))
    return [*_head_faults(root, head), *_size_faults(root, head, found[2]), *_link_faults(root)]


def _frontmatter(block: str) -> Iterator[tuple[str, str]]:
    for line in block.splitlines():
        name, _, value = line.partition(":")
        yield name.strip(), value.strip()


def _head_faults(root: Path, head: dict[str, str]) -> Iterator[str]:
    name, description = head.get("name", ""), head.get("description", "")
    yield from (f"frontmatter key {key!r} is not allowed" for key in head.keys() - KEYS)
    if name != root.name:
        yield f"name {name!r} differs from the folder {root.name!r}"
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) or len(name) > 64:
        yield f"name {name!r}: 1-64 lowercase letters, digits and single hyphens"
    if not 1 <= len(description) <= 500 or re.search("[<>]", description):
        yield f"description has {len(description)} characters; allowed: 1-500, without < and >"
    if len(head.get("compatibility", "")) > 500:
        yield "compatibility has more than 500 characters"


def _size_faults(root: Path, head: dict[str, str], body: str) -> Iterator[str]:
    sizes = {str(page.relative_to(root)): _tokens(page) for page in _markdown(root)}
    start = count_tokens(f"{head.get('name')}: {head.get('description')}")
    yield from _over("name and description", start, START_TOKENS)
    yield from _over("body of SKILL.md", count_tokens(body), BODY_TOKENS)
    yield from _over("all pages", sum(sizes.values()), TREE_TOKENS)
    for place, tokens in sizes.items():
        if place != "SKILL.md":
            yield from _over(place, tokens, PAGE_TOKENS)


def _over(what: str, tokens: int, most: int) -> Iterator[str]:
    if tokens > most:
        yield f"{what}: {tokens} tokens; allowed: {most}"


def _markdown(root: Path) -> list[Path]:
    return sorted(root.rglob("*.md"))


def _tokens(page: Path) -> int:
    return count_tokens(page.read_text("utf-8"))


def _link_faults(root: Path) -> Iterator[str]:
    for page in _markdown(root):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
            if "://" not in link and not (page.parent / link).exists():
                yield f"{page.relative_to(root)} links to {link}, which is not there"
        if len(page.relative_to(root).parts) > 2:
            yield f"{page.relative_to(root)} lies deeper than one folder"


def sizes(root: Path) -> dict[str, int]:
    """What each page of the skill costs to read, in tokens."""
    return {str(page.relative_to(root)): _tokens(page) for page in _markdown(root)}


def install(into: Path) -> list[Path]:
    """Copy the skill to where agents look below a folder, and say where it lies now."""
    first, *others = (into / name for name in AGENT_FOLDERS)
    targets = [first, *(folder for folder in others if folder.is_dir())]
    return [_copy(folder / "skills" / NAME) for folder in targets]


def _copy(target: Path) -> Path:
    """Put this version of the skill in place, whole: pages of an older one must not stay."""
    fresh = target.with_name(f".{NAME}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(tree(), fresh, ignore=shutil.ignore_patterns("evals", "__pycache__"))
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return target
