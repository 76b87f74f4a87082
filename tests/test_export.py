"""An export, imported into an empty home, makes an equal store that answers the same."""

import contextlib
import json
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from samples import DAY, NOW, fill, named, new_store, services_over

from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.core.filters import EVERYTHING
from memsvc.core.ports.store import Outcome
from memsvc.core.records import Kind, Prompt, Ref, WorkSession
from memsvc.entrypoints.cli import main as cli
from memsvc.entrypoints.http.app import create_app

ODD = 'tab\t, bell\x07, line\u2028separator, escape\x1b[31m, 登录, 🎉, "quotes" and \\'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose store has gaps, odd texts, merged cases of names and empty work sessions."""
    path = tmp_path / "home"
    path.mkdir()
    with contextlib.closing(new_store(path / "memsvc.db")) as store:
        fill(store)
        odd = named(
            "odd", subtitle=ODD, narrative=" leading and trailing \n\n", facts=(" a ", "b\n")
        )
        store.write([replace(odd, source="", title="", project="Ünï", files_read=("./x\\y",))])
        store.write([named("future", NOW + 900 * DAY), named("early", 5)])
        store.write([Prompt(source="p", source_id="1", prompt_text="  ", created_at_epoch=-7)])
        store.write([], [WorkSession(session_id="empty", project="shop", status="odd one")])
        for ref in (Ref(Kind.OBSERVATION, 4), Ref(Kind.PROMPT, 7), Ref(Kind.SESSION, 5)):
            assert store.forget(ref)
        assert store.forget(Ref(Kind.OBSERVATION, 23))  # the last id that was given out
    return path


def run(home: Path, *words: object, **given: object) -> Result:
    named_words = [str(word) for word in words]
    env = {"MEMSVC_HOME": str(home), "MEMSVC_PORT": "1"}
    return CliRunner().invoke(cli.memsvc, named_words, env=env, **given)  # type: ignore[arg-type]


def lines_of(home: Path, *words: str) -> list[str]:
    """The lines of an export; only a line feed ends one."""
    return [f"{line}\n" for line in run(home, "export", *words).stdout.split("\n") if line]


def opened(home: Path) -> contextlib.closing[SqliteStore]:
    return contextlib.closing(open_store(home / "memsvc.db"))


ROUTES = (
    "/api/search?query=payment+retry&limit=50",
    "/api/search?query=checkout&explain=1",
    "/api/search?query=double+charge+-ledger&project=shop",
    "/api/search/observations?query=worker&type=bugfix",
    "/api/search/by-file?files=src/payments",
    "/api/search/by-file?files=x/y",
    "/api/context/recent?limit=10",
    "/api/context/inject?project=shop",
    "/api/context/timeline?anchor=1",
    "/api/timeline/by-query?query=timeout",
    "/api/observation/9",
    "/api/session/2",
    "/api/prompt/3",
    "/api/projects",
    "/api/stats",
)


def test_an_equal_store_with_equal_answers(home: Path, tmp_path: Path) -> None:
    file, copy = tmp_path / "all.jsonl", tmp_path / "copy"
    assert run(home, "export", file).exit_code == 0
    imported = run(copy, "import", "jsonl", file, "--json")
    report = json.loads(imported.stdout)
    assert (report["refused"], report["fields_not_kept"]) == (0, {})
    with opened(home) as one, opened(copy) as other:
        assert list(other.contents(EVERYTHING)) == list(one.contents(EVERYTHING))
        assert other.last_ids() == one.last_ids()
        ask_one, ask_other = (
            create_app(services_over(each)).test_client() for each in (one, other)
        )
        for route in ROUTES:
            expected, given = ask_one.get(route), ask_other.get(route)
            assert expected.status_code in (200, 404), route
            assert given.get_data(as_text=True) == expected.get_data(as_text=True), route


def test_the_routes_of_this_test_answer(home: Path) -> None:
    with opened(home) as store:
        client = create_app(services_over(store)).test_client()
        assert {client.get(route).status_code for route in ROUTES} == {200}


def test_the_copy_goes_on_where_the_store_would(home: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    assert run(home, "export", tmp_path / "all.jsonl").exit_code == 0
    assert run(copy, "import", "jsonl", tmp_path / "all.jsonl").exit_code == 0
    with opened(home) as one, opened(copy) as other:
        forgotten = named("early", 5)
        for record in (named("new"), forgotten, named("future", NOW + 900 * DAY, narrative="more")):
            assert other.write([record]) == one.write([record])
        assert other.write([forgotten])[0].outcome is Outcome.FORGOTTEN


def test_an_export_is_repeatable_and_so_is_its_import(home: Path, tmp_path: Path) -> None:
    file, copy = tmp_path / "all.jsonl", tmp_path / "copy"
    run(home, "export", file)
    run(copy, "import", "jsonl", file)
    again = json.loads(run(copy, "import", "jsonl", file, "--json").stdout)
    assert (again["stored"], again["updated"]) == (0, 0)
    assert run(copy, "export").stdout == file.read_text("utf-8")


def test_an_interrupted_import_is_finished_by_the_next(home: Path, tmp_path: Path) -> None:
    file, copy = tmp_path / "all.jsonl", tmp_path / "copy"
    lines = lines_of(home)
    file.write_text("".join(lines[: len(lines) // 2]), "utf-8")
    halved = run(copy, "import", "jsonl", file)
    assert "breaks off" in halved.stdout
    file.write_text("".join(lines), "utf-8")
    run(copy, "import", "jsonl", file)
    with opened(home) as one, opened(copy) as other:
        assert list(other.contents(EVERYTHING)) == list(one.contents(EVERYTHING))


def test_an_export_without_some_of_its_lines_is_noticed(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    lines = lines_of(home)
    file.write_text("".join([*lines[:5], *lines[6:]]), "utf-8")
    assert "not whole" in run(tmp_path / "copy", "import", "jsonl", file).stdout


def test_an_import_into_a_store_with_records_gives_new_refs_where_it_must(
    home: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with contextlib.closing(new_store(other / "memsvc.db")) as store:
        store.write([named("mine")])
    file = tmp_path / "all.jsonl"
    run(home, "export", file)
    report = json.loads(run(other, "import", "jsonl", file, "--json").stdout)
    assert report["refused"] == 0
    with opened(home) as one, opened(other) as store:
        assert store.records([Ref(Kind.OBSERVATION, 1)])[Ref(Kind.OBSERVATION, 1)].source_id == (
            "mine"
        )
        count = one.count(Kind.OBSERVATION, EVERYTHING)
        assert store.count(Kind.OBSERVATION, EVERYTHING) == count + 1


def test_other_json_lines_never_choose_their_refs(tmp_path: Path) -> None:
    file = tmp_path / "plain.jsonl"
    file.write_text('{"id": 500, "title": "one"}\n')
    run(tmp_path / "copy", "import", "jsonl", file)
    with opened(tmp_path / "copy") as store:
        assert store.last_ids()[Kind.OBSERVATION] == 1


def test_the_export_of_a_project_holds_its_records_alone(home: Path, tmp_path: Path) -> None:
    bodies = [
        json.loads(line)
        for line in run(home, "export", "--project", "SHOP").stdout.split("\n")
        if line
    ]
    assert {body["project"] for body in bodies[1:-1]} == {"shop"}
    assert "forgotten" not in {body.get("kind") for body in bodies}
    run(home, "export", "--project", "SHOP", tmp_path / "shop.jsonl")
    imported = run(tmp_path / "copy", "import", "jsonl", tmp_path / "shop.jsonl", "--json")
    assert json.loads(imported.stdout)["refused"] == 0


def test_a_file_is_private_and_replaced_only_by_force(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    file.write_text("something dear")
    assert run(home, "export", file).exit_code == 2
    assert file.read_text() == "something dear"
    assert run(home, "export", "--force", file).exit_code == 0
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"home", "all.jsonl"}


def test_what_cannot_be_exported_is_one_sentence(home: Path, tmp_path: Path) -> None:
    nowhere = run(home, "export", tmp_path / "none" / "all.jsonl")
    assert (nowhere.exit_code, nowhere.stderr.count("\n")) == (1, 1)
    no_store = run(tmp_path / "nothing", "export")
    assert (no_store.exit_code, no_store.stderr.count("\n")) == (1, 1)
    assert not (tmp_path / "nothing").exists()


def _line(**given: object) -> str:
    body = {"kind": "prompt", "id": 1, "project": "", "session_id": "", "created_at_epoch": 5}
    body |= {"source": "s", "source_id": "1", "prompt_text": "why?", "prompt_number": None}
    return json.dumps(body | given)


@pytest.mark.parametrize(
    "line",
    [
        _line(id=2**62),
        _line(id=-1),
        _line(id=True),
        _line(prompt_text=7),
        _line(prompt_text="half \ud83c"),
        _line(created_at_epoch=2**70),
        _line(kind="tale"),
        '{"kind": "forgotten", "of": "tale", "source": "", "source_id": "", "content_hash": 0,'
        ' "created_at_epoch": 0}',
        "[1]",
        "null",
        "{",
    ],
)
def test_a_line_of_an_export_that_was_tampered_with_is_refused(tmp_path: Path, line: str) -> None:
    first = '{"memsvc_export": 1, "last_ids": {"observation": 0, "session": 0, "prompt": 0}}'
    end = '{"memsvc_export_end": 2}'
    file = tmp_path / "all.jsonl"
    file.write_text("\n".join([first, line, _line(), end, ""]), "utf-8")
    report = json.loads(run(tmp_path / "copy", "import", "jsonl", file, "--json").stdout)
    assert report["stored"] == 1
    assert "line 2" in [refusal["place"] for refusal in report["refusals"]]


@pytest.mark.parametrize(
    "first",
    [
        '{"memsvc_export": 99, "last_ids": {}}',
        '{"memsvc_export": 1, "last_ids": {"observation": 4611686018427387904}}',
        '{"memsvc_export": 1}',
    ],
)
def test_a_first_line_that_is_not_understood_is_refused(tmp_path: Path, first: str) -> None:
    file = tmp_path / "all.jsonl"
    file.write_text(f"{first}\n", "utf-8")
    report = json.loads(run(tmp_path / "copy", "import", "jsonl", file, "--json").stdout)
    assert report["refusals"][0]["place"] == "line 1"


def test_a_long_record_is_exported_and_imported(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    home.mkdir()
    with contextlib.closing(new_store(home / "memsvc.db")) as store:
        store.write([named("long", narrative='"\x01' * 2_000_000)])
    run(home, "export", tmp_path / "all.jsonl")
    report = json.loads(run(copy, "import", "jsonl", tmp_path / "all.jsonl", "--json").stdout)
    assert (report["stored"], report["refused"]) == (1, 0)
