"""The `memsvc` command: what people and scripts get from it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from fake_semantic import indexed

from benchmarks.sample import sample_worker
from memsvc.api.operations import OPERATIONS
from memsvc.configuration.settings import SETTINGS, load_settings
from memsvc.entrypoints.cli import main as cli
from memsvc.entrypoints.cli import operations as commands


@pytest.fixture(scope="module")
def port() -> Iterator[str]:
    """The port of a worker over the bundled sample."""
    with sample_worker(indexed) as address:
        yield address.rsplit(":", 1)[1]


def run(port: str, *words: str) -> Result:
    return CliRunner().invoke(cli.memsvc, words, env={"MEMSVC_PORT": port})


RECORDS = '{"id": 1, "title": "one"}\n{"id": 2, "title": "two"}\nnot json\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMSVC_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MEMSVC_PORT", raising=False)
    (tmp_path / "records.jsonl").write_text(RECORDS)
    return tmp_path


@pytest.mark.parametrize(
    "operation",
    [o for o in OPERATIONS if o.command and o.method == "GET"],
    ids=lambda operation: operation.command,
)
def test_every_operation_has_a_command_that_answers_its_example(operation, port) -> None:
    words = [*operation.command.split()]
    for name, value in operation.example.items():
        words += [value] if name == operation.argument else [f"--{name}", value]
    result = run(port, *words)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip()


def test_a_command_prints_text_and_with_json_the_same_as_json(port) -> None:
    text = run(port, "search", "observations", "webhook", "--limit", "2").stdout
    answer = json.loads(
        run(port, "search", "observations", "webhook", "--limit", "2", "--json").stdout
    )
    assert [f"#{row['ref']} " in text for row in answer["results"]] == [True, True]


def test_words_need_no_quotes(port) -> None:
    unquoted = run(port, "search", "observations", "double", "charge", "--json").stdout
    assert json.loads(unquoted)["query"] == "double charge"


def test_search_without_a_kind_searches_all_kinds(port) -> None:
    answer = json.loads(run(port, "search", "certificate", "--json").stdout)
    assert {row["kind"] for row in answer["results"]} > {"observation"}


def test_search_takes_filters_before_any_word(port) -> None:
    answer = json.loads(run(port, "search", "--type", "decision", "--limit", "2", "--json").stdout)
    assert {row["type"] for row in answer["results"]} == {"decision"}


def test_repeated_options_are_alternatives(port) -> None:
    words = ("search", "--type", "decision", "--type", "refactor", "--limit", "100", "--json")
    found = json.loads(run(port, *words).stdout)["results"]
    assert {row["type"] for row in found} == {"decision", "refactor"}


def test_a_bad_parameter_exits_with_2_and_names_it(port) -> None:
    result = run(port, "search", "observations", "x", "--limit", "500")
    assert result.exit_code == commands.USAGE_ERROR
    assert "limit" in result.stderr
    assert "1 to 100" in result.stderr
    assert not result.stdout


def test_a_record_that_is_not_there_exits_with_4(port) -> None:
    result = run(port, "show", "observation", "999999")
    assert result.exit_code == commands.NOT_FOUND
    assert "999999" in result.stderr


def test_without_a_worker_it_exits_with_3_and_names_the_command_that_starts_one(home) -> None:
    result = run("1", "search", "anything")
    assert result.exit_code == commands.NO_WORKER
    assert "memsvc start" in result.stderr


def test_get_prints_the_plain_answer(port) -> None:
    assert json.loads(run(port, "get", "/api/health").stdout)["status"] == "ok"
    assert json.loads(run(port, "get", "api/health").stdout)["status"] == "ok"


def test_routes_lists_every_route(port) -> None:
    listed = json.loads(run(port, "routes", "--json").stdout)
    assert {row["path"] for row in listed} >= {operation.path for operation in OPERATIONS}


def test_the_worker_is_found_by_the_file_that_it_writes(home) -> None:
    with sample_worker(indexed) as address:
        host, port = address.removeprefix("http://").split(":")
        settings = load_settings({"MEMSVC_HOME": str(home / "home")})
        settings.home.mkdir()
        settings.worker_file.write_text(json.dumps({"pid": 1, "host": host, "port": int(port)}))
        result = CliRunner().invoke(cli.memsvc, ["health", "--json"])
    assert json.loads(result.stdout)["status"] == "ok"


def test_status_tells_of_a_store_that_is_not_there_yet_and_makes_none(home) -> None:
    told = json.loads(
        CliRunner().invoke(cli.memsvc, ["status", "--json"], env={"MEMSVC_PORT": "1"}).stdout
    )
    assert told["store"] == "none yet"
    assert told["running"] is False
    assert not (home / "home").exists()


def test_an_import_reports_what_was_stored_and_refused(home) -> None:
    words = ["import", "jsonl", str(home / "records.jsonl"), "--json"]
    report = json.loads(CliRunner().invoke(cli.memsvc, words).stdout)
    assert (report["stored"], report["refused"]) == (2, 1)
    assert "3" in report["refusals"][0]["place"]
    again = json.loads(CliRunner().invoke(cli.memsvc, words).stdout)
    assert (again["stored"], again["unchanged"]) == (0, 2)


@pytest.mark.parametrize(
    ("flags", "said"), [([], "run it again to finish"), (["--dry-run"], "nothing was written")]
)
def test_an_interrupted_import_says_what_is_left_of_it(home, monkeypatch, flags, said) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("memsvc.adapters.sqlite.records.preview", interrupted)
    words = ["import", "jsonl", str(home / "records.jsonl"), *flags]
    result = CliRunner().invoke(cli.memsvc, words)
    assert result.exit_code == commands.FAILED
    assert result.stderr.splitlines()[-1].startswith("memsvc: interrupted; ")
    assert said in result.stderr


def test_a_dry_run_writes_nothing(home) -> None:
    words = ["import", "jsonl", str(home / "records.jsonl"), "--dry-run"]
    assert "2 would be stored" in CliRunner().invoke(cli.memsvc, words).stdout
    told = CliRunner().invoke(cli.memsvc, ["status", "--json"], env={"MEMSVC_PORT": "1"}).stdout
    assert json.loads(told).get("observations", 0) == 0


def test_settings_lists_every_variable() -> None:
    printed = CliRunner().invoke(cli.memsvc, ["settings"]).stdout
    assert all(setting.variable in printed for setting in SETTINGS)


def test_every_command_explains_itself() -> None:
    def leaves(group, words=()):
        for name, command in group.commands.items():
            yield (*words, name)
            if hasattr(command, "commands"):
                yield from leaves(command, (*words, name))

    for words in leaves(cli.memsvc):
        result = CliRunner().invoke(cli.memsvc, [*words, "--help"])
        assert result.exit_code == 0
        assert result.output.count("\n") > 4, words


def test_an_error_is_one_sentence_and_an_exit_code(home) -> None:
    bad_setting = CliRunner().invoke(cli.memsvc, ["status"], env={"MEMSVC_PORT": "many"})
    assert bad_setting.exit_code == commands.USAGE_ERROR
    assert bad_setting.stderr == "memsvc: MEMSVC_PORT is 'many'; allowed: 0 to 65535\n"
    no_repository = CliRunner().invoke(cli.memsvc, ["import", "git", str(home)])
    assert no_repository.exit_code != 0
    assert no_repository.stderr.count("\n") == 1
