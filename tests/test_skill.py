"""The mem-search skill: pages that are right about the service, its rules, its installation."""

import contextlib
import json
import re
import shlex
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from fake_semantic import indexed
from hypothesis import given
from hypothesis import strategies as st
from samples import named
from test_import_git import Repository

import memsvc
from benchmarks.sample import run_command, sample_worker
from memsvc import __version__
from memsvc.adapters.sqlite.store import open_store
from memsvc.api.operations import OPERATIONS, TEN
from memsvc.api.skill_pages import ADDRESS
from memsvc.entrypoints.cli import main as cli
from memsvc.entrypoints.cli.operations import FAILED, USAGE_ERROR
from memsvc.entrypoints.skill import check
from memsvc.entrypoints.skill.install import skill_folder
from tests.documents import BASH, EXAMPLE, ROOT, documents, renewed

TREE = skill_folder()
DOCUMENTS = sorted(documents())
PAGES = [path for path in DOCUMENTS if path.is_relative_to(TREE)]

FENCE = re.compile(r"```(\w*)\n(.*?)```", re.S)
COMMAND = re.compile(r"`((?:memsvc|curl) [^`]+)`|^    ((?:memsvc|curl) .*)$", re.M)
RUN_ELSEWHERE = {
    "memsvc serve",
    "memsvc trial",
    "memsvc index",
    "memsvc index --rebuild",
    "memsvc mcp",
    "memsvc restore",
    "memsvc restore FILE",
    "memsvc restore --dry-run FILE",
    "memsvc doctor",
    "memsvc doctor --fix",
    "memsvc stop; memsvc doctor --fix; memsvc start",
    "memsvc export ~/memsvc.jsonl",
    "memsvc export memsvc.jsonl",
    "memsvc import jsonl memsvc.jsonl",
}
"""They do not end, need the real model or a file of the reader's, print nothing, or report faults
of the folder; other tests run them over stores of their own.
"""


def place(path: Path) -> str:
    return str(path.relative_to(ROOT))


def run(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(cli.memsvc, words, env=environment)


def commands(document: str) -> list[str]:
    """Every command line of a document from top to bottom: blocks, inline, in tables, indented."""
    quoted = FENCE.sub(lambda f: f"`{f[2].strip()}`" if f[1] == "bash" else "", document)
    found = (inline or indented for inline, indented in COMMAND.findall(quoted))
    return [" ".join(command.split("  #")[0].split()) for command in found]


# -- the pages and the service --------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=place)
def test_a_committed_page_is_the_one_that_would_be_made_now(path: Path) -> None:
    assert path.read_text("utf-8") == renewed(path), "make docs writes it anew"


def test_every_one_of_the_ten_operations_has_a_page_and_two_more_are_written_by_hand() -> None:
    names = {path.stem for path in (TREE / "operations").glob("*.md")}
    assert names == {o.name for o in TEN} | {"formatting", "common-workflows"}


@pytest.mark.parametrize("path", PAGES, ids=place)
def test_every_block_with_a_command_is_followed_by_its_answer(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(BASH.findall(text)) == len(EXAMPLE.findall(text))
    assert all(found["answer"].strip() for found in EXAMPLE.finditer(text))


@pytest.mark.parametrize("operation", TEN, ids=lambda operation: operation.name)
def test_an_operation_page_names_every_parameter_a_command_a_curl_its_cost_and_errors(
    operation,
) -> None:
    text = (TREE / "operations" / f"{operation.name}.md").read_text("utf-8")
    assert not [name for name in operation.schema.fields if f"`{name}`" not in text]
    assert f"memsvc {operation.command}" in text
    assert f"curl -s '{ADDRESS}{operation.path}?" in text
    assert operation.cost in text
    assert "exit 2" in text
    assert "`memsvc start`" in text


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder with all that a document's commands name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEMSVC_HOME", str(tmp_path / "memory"))
    monkeypatch.setenv("MEMSVC_SEMANTIC", "off")
    monkeypatch.delenv("CLAUDE_MEM_DATA_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    Repository(tmp_path / "src" / "project").commit("fix: a first step", "a.py")
    (tmp_path / "records.jsonl").write_text('{"title": "one"}\n')
    (tmp_path / ".claude-mem").mkdir()
    empty_claude_mem(tmp_path / ".claude-mem" / "claude-mem.db")
    with contextlib.closing(open_store(tmp_path / "memory" / "memsvc.db")) as store:
        store.write([named("a record of the reader's", project="shop")])
    return tmp_path


def empty_claude_mem(path: Path) -> None:
    from test_import_claude_mem import NEW_SCHEMA

    connection = sqlite3.connect(path)
    connection.executescript(NEW_SCHEMA)
    connection.close()


@pytest.mark.parametrize("path", DOCUMENTS, ids=place)
def test_every_command_line_of_a_document_runs(path: Path, machine: Path) -> None:
    text = path.read_text("utf-8")
    fenced = {" ".join(block.split()) for block in BASH.findall(text)}
    written = [command for command in commands(text) if command not in RUN_ELSEWHERE]
    assert written
    with sample_worker(indexed) as address:
        for command in written:
            printed = run_command(command.replace("~", str(machine)), address)
            assert printed.strip(), command
            assert command in fenced or '"code":' not in printed, f"{command}: {printed}"


def test_command_lines_are_found_in_blocks_in_prose_in_tables_and_indented() -> None:
    document = """Ask `memsvc read\n51`. | a | `curl -s 'x'` |\n\n    memsvc serve   # runs\n
```bash\nmemsvc help\n```\n\n```text\nsee `memsvc not this`\n```\n"""
    assert commands(document) == ["memsvc read 51", "curl -s 'x'", "memsvc serve", "memsvc help"]


# -- SKILL.md -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def head() -> dict[str, str]:
    """The frontmatter of SKILL.md as a YAML reader sees it."""
    text = (TREE / "SKILL.md").read_text("utf-8")
    return dict(yaml.safe_load(text.split("---\n")[1]))


def test_the_description_says_what_then_when_in_users_words_then_what_not_for(
    head: dict[str, str],
) -> None:
    what, when, excluded = re.split(r"(?<=\.) (?=Use when|Not for)", head["description"])
    assert len(what.split()) <= 15
    assert when.startswith("Use when")
    words = ("already", "before", "last time", "yesterday", "last week")
    assert not [word for word in words if word not in when]
    assert excluded.startswith("Not for the current conversation, general knowledge")


def test_reading_is_allowed_without_asking_and_forgetting_is_not(head: dict[str, str]) -> None:
    rules = re.findall(r"Bash\((.*?)\*?\)(?= |$)", head["allowed-tools"])
    prefixes = tuple(rule.removesuffix(":") for rule in rules)
    shown = [command for path in PAGES for command in commands(path.read_text("utf-8"))]
    asked = {command for command in shown if not command.startswith(prefixes)}
    assert asked == {"memsvc forget observation 51"}


def test_the_decision_table_leads_to_every_operation(head: dict[str, str]) -> None:
    text = (TREE / "SKILL.md").read_text("utf-8")
    linked = set(re.findall(r"\]\(operations/([\w-]+)\.md\)", text))
    assert linked == {path.stem for path in (TREE / "operations").glob("*.md")}


def test_the_budgets_are_those_promised() -> None:
    assert (check.MAX_HEAD_TOKENS, check.MAX_BODY_TOKENS) == (150, 900)
    assert (check.MAX_PAGE_TOKENS, check.MAX_PAGE_WORDS) == (500, 350)
    assert check.MAX_TREE_TOKENS == 6000


def test_no_page_names_a_path_of_a_machine() -> None:
    told = "".join(path.read_text("utf-8") for path in PAGES)
    assert not re.search(r"/(?:home|root|tmp|Users|work)/", told)


# -- memsvc skill check ---------------------------------------------------------------------------


def test_check_finds_no_fault_in_our_skill() -> None:
    result = run("skill", "check")
    assert result.exit_code == 0, result.output
    assert re.fullmatch(r"mem-search: 13 pages, \d+ tokens, no faults\n", result.stdout)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the skill, to be broken."""
    shutil.copytree(TREE, tmp_path / "mem-search")
    return tmp_path / "mem-search"


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    """A break: this text of this page becomes that, everywhere."""

    def change(root: Path) -> None:
        page = root / name
        assert old in page.read_text("utf-8")
        page.write_text(page.read_text("utf-8").replace(old, new), "utf-8")

    return change


def line(name: str, value: str) -> Callable[[Path], None]:
    """A break: one line of the frontmatter says something else, or is there anew."""

    def change(root: Path) -> None:
        page = root / "SKILL.md"
        kept = re.sub(rf"(?m)\A(---\n(?:.+\n)*?){name}:.*\n", r"\1", page.read_text("utf-8"))
        page.write_text(kept.replace("---\n", f"---\n{name}: {value}\n", 1), "utf-8")

    return change


def add(name: str, text: str) -> Callable[[Path], None]:
    """A break: a page more."""

    def change(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")

    return change


def without_body(root: Path) -> None:
    page = root / "SKILL.md"
    page.write_text(page.read_text("utf-8").split("\n---\n")[0] + "\n---\n\n", "utf-8")


FORMATTING = "operations/formatting.md"
BREAKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no SKILL.md": (lambda root: (root / "SKILL.md").unlink(), "is missing"),
    "no frontmatter": (edit("SKILL.md", "---\n", ""), "no frontmatter"),
    "nothing below it": (without_body, "is empty"),
    "a key too many": (line("argument-hint", "words"), "'argument-hint' is not allowed"),
    "a key twice": (edit("SKILL.md", "license:", "name: x\nlicense:"), "'name' is given twice"),
    "no key": (edit("SKILL.md", "license:", "license"), "is not `key: value`"),
    "a colon in a value": (line("license", "free: as in air"), "quote it"),
    "a list for a value": (line("license", "[a, b]"), "quote it"),
    "a comment in a value": (line("license", "free #1"), "quote it"),
    "another name": (line("name", "memory"), "differs from the folder"),
    "capitals": (line("name", "Mem-Search"), "lowercase letters"),
    "two hyphens": (line("name", "mem--search"), "single hyphens"),
    "a hyphen at the end": (line("name", "mem-search-"), "single hyphens"),
    "a long name": (line("name", "m" * 65), "1-64"),
    "no description": (line("description", ""), "description has 0 characters"),
    "a long description": (line("description", "x" * 501), "description has 501 characters"),
    "a tag in the description": (line("description", "Finds x<y"), "without < and >"),
    "long compatibility": (line("compatibility", "x" * 501), "compatibility has 501"),
    "no compatibility": (line("compatibility", ""), "compatibility has 0"),
    "metadata that is no map": (line("metadata", "yes"), "metadata is not a mapping"),
    "a heavy start": (line("description", "語" * 300), "name and description: 2"),
    "a heavy body": (edit("SKILL.md", "\n## Pitfalls", "\nx" * 600), "body of SKILL.md: "),
    "a heavy page": (edit(FORMATTING, "**Text**", "x" * 900), f"{FORMATTING}: "),
    "a wordy page": (edit(FORMATTING, "**Text**", "x " * 200), " words; allowed: 350"),
    "a heavy tree": (edit("SKILL.md", "\n## Pitfalls", "\nx" * 900), "all pages: "),
    "a link to nothing": (edit("SKILL.md", "(operations/help.md)", "(help.md)"), "does not exist"),
    "a link from a page to nothing": (edit(FORMATTING, "**Text**", "[x](y.md)"), "does not exist"),
    "a link out of the skill": (edit(FORMATTING, "**Text**", "[x](../../x.md)"), "outside"),
    "a page too deep": (add("operations/more/x.md", "x"), "more than one folder deep"),
    "a page nobody is led to": (add("operations/x.md", "x"), "does not link to operations/x.md"),
}


@pytest.mark.parametrize(("spoil", "said"), BREAKS.values(), ids=BREAKS)
def test_check_names_what_is_wrong(spoil: Callable[[Path], object], said: str, copy: Path) -> None:
    spoil(copy)
    result = run("skill", "check", str(copy))
    assert result.exit_code == FAILED
    assert said in result.stderr
    assert not result.stdout


@pytest.mark.parametrize(
    "change",
    [
        line("license", '"free: as in air"'),
        edit("SKILL.md", "license:", "metadata:\n  author: a team\n  level: '2'\nlicense:"),
        edit(FORMATTING, "**Text**", "[x](https://example.org/x.md) [y](help.md#errors)"),
    ],
    ids=["quotes", "metadata", "links elsewhere and into a page"],
)
def test_check_takes_what_the_specification_allows(
    change: Callable[[Path], None], copy: Path
) -> None:
    change(copy)
    assert run("skill", "check", str(copy)).exit_code == 0


def test_check_of_a_folder_that_is_not_there_is_a_fault() -> None:
    result = run("skill", "check", "nowhere/mem-search")
    assert result.exit_code == FAILED
    assert "is missing" in result.stderr


@given(st.text(), st.text())
def test_check_gives_sentences_whatever_the_pages_hold(top: str, page: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "mem-search"
        add("SKILL.md", f"---\n{top}\n---\n{page}")(root)
        add("operations/x.md", page)(root)
        assert all(isinstance(fault, str) and fault for fault in check.check(root))


# -- memsvc skill install -------------------------------------------------------------------------


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


EXPECTED = {str(path.relative_to(TREE)) for path in PAGES}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder, and the folder where the command runs."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "below"),
    [(["--user"], "."), (["--project", "../other"], "other"), ([], "project")],
    ids=["user", "project", "here"],
)
def test_install_puts_the_pages_and_no_evals_where_agents_look(
    words: list[str], below: str, home: Path
) -> None:
    (home / "other").mkdir()
    result = run("skill", "install", *words)
    assert result.exit_code == 0, result.output
    placed = home / below / ".claude" / "skills" / "mem-search"
    assert files(placed) == EXPECTED
    assert run("skill", "check", str(placed)).exit_code == 0
    assert not list(placed.parent.glob(".*"))


def test_install_serves_other_agents_only_where_they_are_at_home(home: Path) -> None:
    (home / ".codex").mkdir()
    result = run("skill", "install", "--user")
    assert files(home / ".codex" / "skills" / "mem-search") == EXPECTED
    assert not (home / ".gemini").exists()
    assert result.stdout.count("installed ") == 2


def test_installing_again_removes_pages_of_an_older_version_and_leaves_the_neighbours(
    home: Path,
) -> None:
    run("skill", "install", "--user")
    skills = home / ".claude" / "skills"
    add("mem-search/operations/old.md", "old")(skills)
    add("other/SKILL.md", "another skill")(skills)
    edit("mem-search/SKILL.md", "Search memory", "Tampered")(skills)
    assert run("skill", "install", "--user").exit_code == 0
    assert files(skills / "mem-search") == EXPECTED
    assert (skills / "mem-search" / "SKILL.md").read_bytes() == (TREE / "SKILL.md").read_bytes()
    assert (skills / "other" / "SKILL.md").exists()


def test_a_link_to_this_very_skill_is_left_alone(home: Path) -> None:
    skills = home / ".claude" / "skills"
    skills.mkdir(parents=True)
    (skills / "mem-search").symlink_to(TREE)
    assert run("skill", "install", "--user").exit_code == 0
    assert (skills / "mem-search").is_symlink()
    assert (TREE / "evals").exists()


def test_a_link_to_another_place_is_replaced_and_that_place_kept(home: Path) -> None:
    skills = home / ".claude" / "skills"
    add("kept/SKILL.md", "kept")(home)
    skills.mkdir(parents=True)
    (skills / "mem-search").symlink_to(home / "kept")
    assert run("skill", "install", "--user").exit_code == 0
    assert files(skills / "mem-search") == EXPECTED
    assert (home / "kept" / "SKILL.md").read_text() == "kept"


@pytest.mark.parametrize("blocked", [".claude", ".claude/skills", ".claude/skills/mem-search"])
def test_a_target_that_cannot_be_written_is_one_sentence(blocked: str, home: Path) -> None:
    add(blocked, "a file")(home)
    result = run("skill", "install", "--user")
    assert result.exit_code == FAILED
    assert re.fullmatch(
        r"memsvc: The skill cannot be installed at .*mem-search: .*\.\n", result.stderr
    )
    assert (home / blocked).read_text() == "a file"


def test_user_and_project_together_are_refused(home: Path) -> None:
    assert run("skill", "install", "--user", "--project", ".").exit_code == USAGE_ERROR


# -- what carries the skill -----------------------------------------------------------------------


def test_the_tree_is_found_in_a_checkout_and_inside_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert skill_folder() == ROOT / "skills" / "mem-search"
    inside = tmp_path / "memsvc" / "skills" / "mem-search"
    inside.mkdir(parents=True)
    monkeypatch.setattr(memsvc, "__file__", str(tmp_path / "memsvc" / "__init__.py"))
    assert skill_folder() == inside


def packaging() -> dict[str, object]:
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return dict(settings["tool"]["setuptools"])


def test_the_package_is_built_with_every_folder_of_code_and_with_the_skill() -> None:
    code = {path.parent for path in (ROOT / "memsvc").rglob("__init__.py")}
    named = {".".join(folder.relative_to(ROOT).parts) for folder in code}
    assert set(packaging()["packages"]) == named | {"memsvc.skills"}
    assert packaging()["package-dir"] == {"memsvc.skills": "skills"}


def test_the_package_carries_every_page_of_the_skill_and_no_evals() -> None:
    patterns = packaging()["package-data"]["memsvc.skills"]
    carried = {path for pattern in patterns for path in (ROOT / "skills").glob(pattern)}
    assert carried == set(PAGES)


def plugin() -> Iterator[dict[str, object]]:
    folder = ROOT / ".claude-plugin"
    yield json.loads((folder / "plugin.json").read_text("utf-8"))
    yield from json.loads((folder / "marketplace.json").read_text("utf-8"))["plugins"]


def test_the_repository_is_a_plugin_that_holds_the_skill() -> None:
    manifest, offered = plugin()
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", manifest["name"])
    assert manifest["version"] == __version__
    assert (ROOT / manifest["skills"] / "mem-search").resolve() == TREE.resolve()
    assert (offered["name"], offered["source"]) == (manifest["name"], "./")


def test_every_command_in_the_pages_is_one_that_the_table_knows() -> None:
    known = {f"memsvc {o.command}".split()[1] for o in OPERATIONS if o.command}
    known |= {"start", "address"}
    shown = [
        shlex.split(c)[1] for p in PAGES for c in commands(p.read_text("utf-8")) if c[0] == "m"
    ]
    assert set(shown) <= known
