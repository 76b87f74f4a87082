"""claude-mem databases of both generations, built small, read without leaving a trace."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from planted import planted_secrets

from memsvc.adapters.importers.claude_mem import default_database, read_claude_mem
from memsvc.adapters.secrets import mask_secrets
from memsvc.adapters.sqlite.store import SqliteStore, open_store
from memsvc.application.importing.ingest import ingest
from memsvc.application.importing.report import Report
from memsvc.core.errors import SourceUnreadable
from memsvc.core.filters import Filter
from memsvc.core.records import Kind, Observation, Prompt, Record, Summary

NOON = 1_790_000_000_000

OLD_SCHEMA = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, claude_session_id TEXT UNIQUE NOT NULL,
    sdk_session_id TEXT UNIQUE, project TEXT NOT NULL, user_prompt TEXT, started_at TEXT,
    started_at_epoch INTEGER, completed_at TEXT, completed_at_epoch INTEGER, status TEXT);
CREATE TABLE observations (id INTEGER PRIMARY KEY, sdk_session_id TEXT NOT NULL, project TEXT,
    text TEXT, type TEXT, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT,
    files_read TEXT, files_modified TEXT, prompt_number INTEGER, created_at TEXT,
    created_at_epoch INTEGER);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, sdk_session_id TEXT, project TEXT,
    request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT,
    files_read TEXT, files_edited TEXT, notes TEXT, created_at TEXT, created_at_epoch INTEGER);
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, claude_session_id TEXT NOT NULL,
    prompt_number INTEGER, prompt_text TEXT, created_at TEXT, created_at_epoch INTEGER);
CREATE TABLE overviews (id INTEGER PRIMARY KEY, content TEXT);
"""
NEW_SCHEMA = (
    OLD_SCHEMA.replace("claude_session_id TEXT UNIQUE", "content_session_id TEXT")
    .replace("claude_session_id", "content_session_id")
    .replace("sdk_session_id", "memory_session_id")
    .replace("type TEXT,", "type TEXT, discovery_tokens INTEGER, merged_into_project TEXT,")
    .replace("prompt_text TEXT,", "prompt_text TEXT, session_db_id INTEGER,")
)
IDS = {"old": ("claude_session_id", "sdk_session_id")}
IDS["new"] = ("content_session_id", "memory_session_id")


class Database:
    """A claude-mem database under construction."""

    def __init__(self, path: Path, generation: str) -> None:
        self.path = path
        self.content_id, self.memory_id = IDS[generation]
        self.connection = sqlite3.connect(path)
        self.connection.executescript(OLD_SCHEMA if generation == "old" else NEW_SCHEMA)

    def add(self, table: str, **cells: Any) -> None:
        names, marks = ", ".join(cells), ", ".join("?" * len(cells))
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"
        self.connection.execute(sql, [*cells.values()])
        self.connection.commit()

    def session(self, content: str, memory: str | None, project: str = "shop") -> None:
        ids = {self.content_id: content, self.memory_id: memory}
        times = {"started_at_epoch": NOON, "completed_at_epoch": NOON + 9000}
        self.add("sdk_sessions", **ids, project=project, status="completed", **times)

    def observation(self, id: int, memory: str = "m1", **cells: Any) -> None:
        said = {"title": f"Title {id}", "type": "bugfix", "project": "shop"}
        row = {"created_at_epoch": NOON + id * 1000, self.memory_id: memory, **said, **cells}
        self.add("observations", id=id, **row)

    def prompt(self, id: int, content: str = "c1", **cells: Any) -> None:
        said = {"prompt_text": f"Prompt {id}", "prompt_number": 1}
        row = {"created_at_epoch": NOON + id * 1000, self.content_id: content, **said, **cells}
        self.add("user_prompts", id=id, **row)

    def summary(self, id: int, memory: str = "m1", **cells: Any) -> None:
        row = {"created_at_epoch": NOON + id * 1000, self.memory_id: memory, "project": "shop"}
        self.add("session_summaries", id=id, **{**row, "request": f"Request {id}", **cells})


@pytest.fixture(params=["old", "new"])
def generation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database(tmp_path: Path, generation: str) -> Iterator[Database]:
    (tmp_path / "theirs").mkdir()
    built = Database(tmp_path / "theirs" / "claude-mem.db", generation)
    built.session("c1", "m1")
    yield built
    built.connection.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = open_store(tmp_path / "ours" / "memories.db")
    yield opened
    opened.close()


def run_import(store: SqliteStore, database: Database) -> Report:
    return ingest(store, read_claude_mem(database.path))


def all_records(store: SqliteStore) -> list[Any]:
    hits = store.page(list(Kind), Filter(), newest_first=False, limit=1000, offset=0)
    found = store.records(hit.ref for hit in hits)
    return [found[hit.ref] for hit in hits]


def only_record(store: SqliteStore) -> Any:
    [record] = all_records(store)
    return record


def fingerprints(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir()}


def test_the_three_kinds_of_both_generations_are_imported(
    store: SqliteStore, database: Database
) -> None:
    cells = {"facts": '["a", "b"]', "concepts": '["gotcha"]', "files_modified": '["src/a.ts"]'}
    database.observation(1, narrative="Why", subtitle="Sub", prompt_number=2, **cells)
    database.summary(2, learned="Much", files_edited='["src/b.ts"]')
    database.prompt(3)
    report = run_import(store, database)
    assert report.stored_kinds == {Kind.OBSERVATION: 1, Kind.SESSION: 1, Kind.PROMPT: 1}
    observation, summary, prompt = all_records(store)
    assert isinstance(observation, Observation)
    assert observation.facts == ("a", "b")
    assert observation.files_modified == ("src/a.ts",)
    assert (observation.type, observation.narrative, observation.prompt_number) == (
        "bugfix",
        "Why",
        2,
    )
    assert isinstance(summary, Summary)
    assert (summary.learned, summary.files_edited) == ("Much", ("src/b.ts",))
    assert isinstance(prompt, Prompt)
    assert (prompt.prompt_text, prompt.project) == ("Prompt 3", "shop")
    assert {record.session_id for record in (observation, summary, prompt)} == {"c1"}


def test_work_sessions_come_with_their_times_and_state(
    store: SqliteStore, database: Database
) -> None:
    database.observation(1)
    run_import(store, database)
    [entry] = store.recent_work(Filter((("project", ("shop",)),)), limit=5, most=5)
    assert entry.session.session_id == "c1"
    assert entry.session.status == "completed"
    assert entry.session.completed_at_epoch == NOON + 9000


def test_the_database_and_its_folder_are_left_as_they_were(
    store: SqliteStore, database: Database
) -> None:
    database.observation(1)
    database.connection.close()
    before = fingerprints(database.path.parent)
    run_import(store, database)
    assert fingerprints(database.path.parent) == before


def test_a_database_in_wal_mode_at_rest_gets_no_files_beside_it(
    store: SqliteStore, database: Database
) -> None:
    database.connection.execute("PRAGMA journal_mode = WAL")
    database.observation(1)
    database.connection.close()
    before = fingerprints(database.path.parent)
    assert [*before] == ["claude-mem.db"]
    assert run_import(store, database).stored == 1
    assert fingerprints(database.path.parent) == before


def test_rows_that_the_running_owner_has_not_checkpointed_are_seen(
    store: SqliteStore, database: Database
) -> None:
    database.connection.execute("PRAGMA journal_mode = WAL")
    database.observation(1)
    reading = read_claude_mem(database.path)
    assert ingest(store, reading).stored == 1
    database.observation(2)
    assert run_import(store, database).stored == 1


def test_the_owner_can_write_while_it_is_read(store: SqliteStore, database: Database) -> None:
    database.observation(1)
    database.observation(2)
    items = read_claude_mem(database.path).items
    next(items)
    database.observation(3)
    assert sum(isinstance(item, Record) for item in items) >= 2


def test_a_second_run_adds_only_what_is_new_and_updates_what_was_edited(
    store: SqliteStore, database: Database
) -> None:
    database.observation(1)
    database.observation(2)
    run_import(store, database)
    again = run_import(store, database)
    assert (again.stored, again.updated, again.unchanged) == (0, 0, 2)
    database.connection.execute("UPDATE observations SET title = 'Edited' WHERE id = 1")
    database.observation(3)
    report = run_import(store, database)
    assert (report.stored, report.updated, report.unchanged) == (1, 1, 1)


def test_an_upgraded_database_updates_its_memories_instead_of_doubling_them(
    store: SqliteStore, tmp_path: Path
) -> None:
    for generation in ("old", "new"):
        database = Database(tmp_path / f"{generation}.db", generation)
        database.session("c1", "m1")
        database.observation(1)
        database.prompt(1)
        database.connection.close()
        report = run_import(store, database)
    assert (report.stored, report.unchanged) == (0, 2)


def test_two_databases_that_both_count_from_one_do_not_overwrite_each_other(
    store: SqliteStore, tmp_path: Path
) -> None:
    for hour, name in enumerate(("laptop", "desktop")):
        database = Database(tmp_path / f"{name}.db", "new")
        database.observation(1, title=name, created_at_epoch=NOON + hour * 3_600_000)
        database.connection.close()
        assert run_import(store, database).stored == 1
    assert [record.title for record in all_records(store)] == ["laptop", "desktop"]


def test_rows_of_the_oldest_kind_become_narratives_with_a_title(
    store: SqliteStore, database: Database
) -> None:
    text = "\n# Fixed the pool\n\nIt leaked a connection."
    database.observation(1, title=None, text=text)
    run_import(store, database)
    record = only_record(store)
    assert (record.title, record.narrative) == ("Fixed the pool", text)


def test_a_long_first_line_is_cut_for_the_title(store: SqliteStore, database: Database) -> None:
    database.observation(1, title=None, text="word " * 100)
    run_import(store, database)
    record = only_record(store)
    assert len(record.title) <= 100
    assert record.title.endswith("…")


@pytest.mark.parametrize(
    ("cell", "items"),
    [
        (None, ()),
        ("", ()),
        ("[]", ()),
        ("null", ()),
        ('["a", "b"]', ("a", "b")),
        ('"one"', ("one",)),
        ("plain, text", ("plain, text",)),
        ('["cut off', ('["cut off',)),
        ('["a", 5, null, {"b": 1}]', ("a", "5", '{"b": 1}')),
        (b"bytes \xff", ("bytes \ufffd",)),
        (7, ("7",)),
    ],
)
def test_a_list_cell_in_any_form_costs_at_most_itself(
    store: SqliteStore, database: Database, cell: object, items: tuple[str, ...]
) -> None:
    database.observation(1, facts=cell, narrative="Kept")
    assert run_import(store, database).refused == 0
    record = only_record(store)
    assert (record.facts, record.narrative) == (items, "Kept")


def test_text_that_is_not_utf8_costs_only_the_bad_bytes(
    store: SqliteStore, database: Database
) -> None:
    database.observation(1)
    database.connection.execute("UPDATE observations SET title = CAST(x'41ff42' AS TEXT)")
    database.connection.commit()
    run_import(store, database)
    assert only_record(store).title == "A\ufffdB"


def test_orphans_are_kept_under_the_session_id_they_have(
    store: SqliteStore, database: Database
) -> None:
    database.observation(1, memory="gone")
    database.prompt(2, content="gone too")
    assert run_import(store, database).stored == 2
    observation, prompt = all_records(store)
    assert (observation.session_id, observation.project) == ("gone", "shop")
    assert (prompt.session_id, prompt.project) == ("gone too", "")


def test_internal_projects_are_left_out_and_counted(store: SqliteStore, database: Database) -> None:
    database.session("c2", "m2", project="observer-sessions")
    database.observation(1, project="observer-sessions")
    database.observation(2, project="")
    database.prompt(3, content="c2")
    database.observation(4)
    report = run_import(store, database)
    assert report.stored == 1
    assert sum(report.skipped.values()) == 3
    assert "observer-sessions" in str(report)
    assert store.count_work_sessions(Filter()) == 1


def test_exact_duplicates_of_a_session_are_merged_into_the_earliest(
    store: SqliteStore, database: Database
) -> None:
    for id in (5, 2, 9):
        database.observation(id, title="Same", narrative="Same")
    database.observation(10, memory="m2", title="Same", narrative="Same")
    report = run_import(store, database)
    assert (report.stored, report.merged) == (2, 2)
    assert all_records(store)[0].created_at_epoch == NOON + 2000
    again = run_import(store, database)
    assert (again.stored, again.merged) == (0, 2)


def test_two_rows_with_the_same_text_may_be_two_events(
    store: SqliteStore, database: Database
) -> None:
    for id in (5, 6):
        database.observation(id, title="Same", narrative="Same", created_at_epoch=NOON)
    assert run_import(store, database).stored == 2


def test_rows_that_claude_mem_itself_calls_the_same_are_merged(
    store: SqliteStore, database: Database
) -> None:
    database.connection.execute("ALTER TABLE observations ADD COLUMN content_hash TEXT")
    for id, content_hash in ((1, "a"), (2, "a"), (3, "b"), (4, "c"), (5, "d")):
        database.observation(id, title="Same", content_hash=content_hash)
    report = run_import(store, database)
    assert (report.stored, report.merged) == (4, 1)


def test_a_prompt_given_again_later_is_kept_its_echo_is_not(
    store: SqliteStore, database: Database
) -> None:
    for id in (1, 3, 4000):
        database.prompt(id, prompt_text="continue")
    report = run_import(store, database)
    assert (report.stored, report.merged) == (2, 1)


def test_memories_typed_in_by_hand_are_imported_like_any_other(
    store: SqliteStore, database: Database
) -> None:
    database.observation(1, memory="manual-shop")
    run_import(store, database)
    assert only_record(store).session_id == "manual-shop"


def test_the_epoch_is_trusted_over_the_text_beside_it(
    store: SqliteStore, database: Database
) -> None:
    database.observation(1, created_at="2020-01-01T00:00:00Z")
    run_import(store, database)
    assert only_record(store).created_at_epoch == NOON + 1000


def test_the_text_counts_where_there_is_no_epoch_and_no_date_at_all_is_refused(
    store: SqliteStore, database: Database
) -> None:
    database.observation(1, created_at="2020-01-01T00:00:00Z", created_at_epoch=None)
    database.observation(2, created_at_epoch=None)
    report = run_import(store, database)
    assert only_record(store).created_at_epoch == 1_577_836_800_000
    assert [refusal.place for refusal in report.refusals] == ["observation 2"]


def test_a_row_without_any_text_is_refused_alone(store: SqliteStore, database: Database) -> None:
    database.observation(1, title=None)
    database.summary(2, request="")
    database.prompt(3, prompt_text=" ")
    database.observation(4)
    report = run_import(store, database)
    assert (report.stored, report.refused) == (1, 3)


def test_any_type_is_kept(store: SqliteStore, database: Database) -> None:
    database.observation(1, type="security_note")
    run_import(store, database)
    assert only_record(store).type == "security_note"


def test_a_session_known_by_its_row_finds_the_project_of_a_prompt(
    store: SqliteStore, tmp_path: Path
) -> None:
    database = Database(tmp_path / "new.db", "new")
    database.session("c1", None, project="first")
    database.session("c1", None, project="second")
    database.prompt(1, session_db_id=1)
    database.connection.close()
    run_import(store, database)
    assert only_record(store).project == "first"


def test_a_worktree_that_was_merged_counts_as_its_project(
    store: SqliteStore, tmp_path: Path
) -> None:
    database = Database(tmp_path / "new.db", "new")
    database.observation(1, project="shop/worktree-7", merged_into_project="shop")
    database.connection.close()
    run_import(store, database)
    assert only_record(store).project == "shop"


def test_a_database_with_observations_only_is_enough(store: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "tiny.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE observations (id INTEGER, sdk_session_id TEXT, project TEXT, text TEXT,"
            " created_at_epoch INTEGER)"
        )
        row = (1, "s", "shop", "Said", NOON)
        connection.execute("INSERT INTO observations VALUES (?, ?, ?, ?, ?)", row)
        connection.commit()
    assert ingest(store, read_claude_mem(path)).stored == 1


def test_progress_ends_at_the_number_of_rows(store: SqliteStore, database: Database) -> None:
    database.observation(1)
    database.prompt(2)
    reading = read_claude_mem(database.path)
    ingest(store, reading)
    assert (reading.total, reading.position()) == (3, 3)


def test_the_default_file_is_where_claude_mem_keeps_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLAUDE_MEM_DATA_DIR", str(tmp_path))
    assert default_database() == tmp_path / "claude-mem.db"
    monkeypatch.delenv("CLAUDE_MEM_DATA_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_database() == tmp_path / ".claude-mem" / "claude-mem.db"


def test_a_missing_file_is_one_sentence_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="There is no claude-mem database"):
        read_claude_mem(tmp_path / "none.db")
    assert [*tmp_path.iterdir()] == []


def test_another_file_is_one_sentence(tmp_path: Path) -> None:
    other = tmp_path / "a.db"
    other.write_text("not a database at all, but long enough to be looked at" * 10)
    with pytest.raises(SourceUnreadable, match="cannot be read as a claude-mem database"):
        read_claude_mem(other)
    empty = tmp_path / "b.db"
    empty.write_bytes(b"")
    with pytest.raises(SourceUnreadable, match="no table observations"):
        read_claude_mem(empty)


def test_lists_survive_as_lists(store: SqliteStore, database: Database) -> None:
    paths = ["a b.ts", "日本.md", 'quo"te.py']
    database.observation(1, files_read=json.dumps(paths))
    run_import(store, database)
    assert only_record(store).files_read == tuple(paths)


def test_secrets_and_private_parts_of_a_database_are_not_kept(
    store: SqliteStore, database: Database, tmp_path: Path
) -> None:
    planted = planted_secrets(Random("claude-mem"), 5)
    assert len(planted) >= 200
    places = ["narrative", "title", "subtitle", "facts", "concepts", "files_read", "project"]
    for number, each in enumerate(planted):
        text = f"{each.text} <private>zanzibarquux</private>"
        if number % 9 == 7:
            database.prompt(number + 1, prompt_text=text)
        elif number % 9 == 8:
            database.summary(number + 1, learned=text)
        else:
            database.observation(number + 1, **{places[number % 9]: text})
    source = read_claude_mem(database.path)
    report = ingest(store, source, mask=mask_secrets)
    assert report.stored + report.merged == len(planted)  # masked, two may say the same
    kept = b"".join(path.read_bytes() for path in (tmp_path / "ours").iterdir())
    assert b"zanzibarquux" not in kept
    lines = [line for each in planted for line in each.secret.splitlines() if "--" not in line]
    assert [line for line in lines if line.encode() in kept] == []
    again = ingest(store, read_claude_mem(database.path), mask=mask_secrets)
    assert again.unchanged + again.merged == len(planted)
