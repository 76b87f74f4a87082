"""README.md and docs/ say nothing that the service does not do."""

import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benchmarks.sample import sample_worker
from memsvc.api.operations import OPERATIONS, TEN
from tests.documents import ROOT, TABLES, handwritten, refresh

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
MARKED = re.compile(r"^<!-- (\w+) -->\n(.*?)^<!-- /(\w+) -->$", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"`((?:memsvc|tests|benchmarks|docs|skills|hooks|\.claude-plugin)/[\w./-]*)`")
MACHINE = re.compile(r"(?<![\w.~/])/(?:home|root|tmp|var|opt|mnt|srv|Users)/|\b[A-Z]:\\")

DOCUMENTS = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in handwritten()}
ALL = "\n".join(DOCUMENTS.values())


def spoiled(document: str) -> str:
    """The document with a false answer below each command, and with false tables."""
    for command, answer in reversed(list(pairwise(FENCE.finditer(document)))):
        if command[1] == "bash":
            false = '{"false": true}\n' if answer[1] == "json" else "false\n"
            document = document[: answer.start(2)] + false + document[answer.end(2) :]
    return MARKED.sub(r"<!-- \1 -->\nfalse\n<!-- /\3 -->", document)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_answer_and_table_is_the_one_that_the_service_gives_now(name: str) -> None:
    with sample_worker() as address:
        assert refresh(spoiled(DOCUMENTS[name]), address) == DOCUMENTS[name], "run make docs"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_command_block_is_followed_by_its_answer(name: str) -> None:
    document = DOCUMENTS[name]
    blocks = list(FENCE.finditer(document))
    assert not blocks or blocks[-1][1] != "bash", "no answer below the last command"
    for command, answer in pairwise(blocks):
        if command[1] == "bash":
            assert answer[1] in ("text", "json"), f"no answer below {command[2]}"
            assert answer[2].strip(), f"an empty answer below {command[2]}"
            assert not document[command.end() : answer.start()].strip(), command[2]


def test_every_generated_table_is_shown_once() -> None:
    assert sorted(found[0] for found in MARKED.findall(ALL)) == sorted(TABLES)


def test_every_test_that_proves_something_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", ALL)
    assert len(named) > 80
    for file, test in named:
        assert f"\ndef {test}(" in (ROOT / file).read_text("utf-8"), f"{file} has no {test}"


def executed() -> list[str]:
    """The commands of all blocks whose answers are compared."""
    return [command for kind, command in FENCE.findall(ALL) if kind == "bash"]


@pytest.mark.parametrize("operation", TEN, ids=lambda operation: operation.name)
def test_each_of_the_ten_routes_has_a_curl_with_its_answer(operation) -> None:
    curls = [command for command in executed() if command.startswith("curl ")]
    urls = [url for command in curls for url in re.findall(r"https?://[^\s']+", command)]
    assert operation.path in [urlsplit(url).path for url in urls]


def test_every_route_is_listed() -> None:
    listed = set(re.findall(r"`(?:(?:GET|POST|DELETE) )?(/[^\s`]*)`", DOCUMENTS["docs/http.md"]))
    served = {path for operation in OPERATIONS for path in (operation.path, *operation.aliases)}
    assert served | {"/", "/openapi.json"} <= listed


def test_the_readme_opens_with_two_commands_and_one_answer_and_stays_short() -> None:
    readme = DOCUMENTS["README.md"]
    _, commands, answer, *_ = re.split(r"^## ", readme, flags=re.M)
    assert {"make run", "make test"} <= set(re.findall(r"^    (make \w+)", commands, re.M))
    assert answer.count("```bash\n") == 1
    assert len(readme.splitlines()) <= 150
    assert len([name for name in DOCUMENTS if name.startswith("docs/")]) <= 8


def test_every_document_is_linked_from_the_readme() -> None:
    linked = {link.split("#")[0] for link in LINK.findall(DOCUMENTS["README.md"])}
    assert set(DOCUMENTS) - {"README.md"} == {link for link in linked if link.startswith("docs/")}


def anchors(document: str) -> set[str]:
    """The anchors that GitHub gives to the headings."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", document), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_leads_to_a_file_and_a_heading(name: str) -> None:
    for link in LINK.findall(FENCE.sub("", DOCUMENTS[name])):
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target.read_text("utf-8")), link


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_file_and_folder_named_is_there(name: str) -> None:
    missing = [path for path in NAMED.findall(DOCUMENTS[name]) if not (ROOT / path).exists()]
    assert not missing


def machine_paths(text: str) -> list[str]:
    """The paths in a text that only exist on somebody's machine."""
    mine = [str(place) for place in (ROOT, Path.home()) if str(place) in text and str(place) != "/"]
    return [*MACHINE.findall(text), *mine]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_path_of_a_machine_is_named(name: str) -> None:
    assert not machine_paths(DOCUMENTS[name])


@pytest.mark.parametrize(
    "path", [f"{ROOT}/README.md", f"{Path.home()}/x", "/home/ann/x", "/tmp/x", "C:\\x"]
)
def test_a_path_of_a_machine_would_be_seen(path: str) -> None:
    assert machine_paths(f"Open `{path}` to see it.")
