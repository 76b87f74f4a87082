"""One contract, four adapters: what every semantic index promises, and what each does by itself."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles import FEWER
from workers import PATIENCE, unused_port, wait_until

from memsvc.adapters.indexes.chroma_http import open_chroma_http
from memsvc.adapters.indexes.chroma_local import open_chroma
from memsvc.adapters.indexes.chroma_search import MAX_COMPARED
from memsvc.adapters.indexes.exact import ExactIndex
from memsvc.adapters.indexes.sqlite_vec import open_sqlite_vec
from memsvc.core.errors import SemanticUnavailable
from memsvc.core.filters import Filter
from memsvc.core.ports.vectors import Embedded, SemanticIndex, Vector
from memsvc.core.records import Kind, Ref

DIMENSION = 8
ADAPTERS = ("exact", "chroma", "chroma-http", "sqlite-vec")
DURABLE = ADAPTERS[1:]
EVERYTHING = Filter()
Open = Callable[[str], SemanticIndex]


class Server:
    """A Chroma server on a free port of the loopback, over a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = unused_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        program = Path(sys.executable).with_name("chroma")
        words = [program, "run", "--path", self.folder, "--host", "127.0.0.1"]
        self.process = subprocess.Popen(
            [*words, "--port", str(self.port)],
            cwd=self.folder.parent,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._answers)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """A server that hangs; it thaws for one who would wait for it for ever."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)  # a signal sent is not yet a stop
        thaw = threading.Timer(PATIENCE, self.process.send_signal, (signal.SIGCONT,))
        thaw.start()
        try:
            yield
        finally:
            thaw.cancel()
            self.process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        assert self.process.poll() is None
        with contextlib.suppress(requests.RequestException):
            return requests.get(f"{self.url}/api/v2/heartbeat", timeout=1).ok
        return False


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("chroma") / "data")
    yield running
    running.stop()


@pytest.fixture
def open_one(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[str], SemanticIndex]]:
    """Open an adapter's index, always the same one within a test."""
    opened: list[SemanticIndex] = []

    def open_it(adapter: str) -> SemanticIndex:
        opened.append(_open(adapter, tmp_path, request))
        return opened[-1]

    yield open_it
    for index in opened:
        index.close()


def _open(adapter: str, folder: Path, request: pytest.FixtureRequest) -> SemanticIndex:
    if adapter == "exact":
        return ExactIndex(DIMENSION)
    if adapter == "chroma":
        return open_chroma(folder / "chroma", DIMENSION)
    if adapter == "sqlite-vec":
        return open_sqlite_vec(folder / "vectors.db", DIMENSION)
    return _open_http(request.getfixturevalue("server"), f"test-{folder.name}")


def _open_http(
    server: Server, prefix: str, dimension: int = DIMENSION, timeout: float = PATIENCE
) -> SemanticIndex:
    return open_chroma_http(server.url, prefix, dimension, timeout=timeout)


@pytest.fixture(params=ADAPTERS)
def index(request: pytest.FixtureRequest, open_one: Open) -> SemanticIndex:
    return open_one(request.param)


def unit(*numbers: float) -> Vector:
    """A vector of length 1 that begins with these numbers."""
    vector = numpy.zeros(DIMENSION, numpy.float32)
    vector[: len(numbers)] = numbers
    return vector / numpy.linalg.norm(vector)


def made(
    record: int,
    *vectors: Vector,
    kind: Kind = Kind.OBSERVATION,
    at: int = 0,
    project: str = "shop",
    type: str = "bugfix",
    concepts: Sequence[str] = (),
) -> Embedded:
    groups = (("project", (project,)), ("type", (type,)), ("concept", tuple(concepts)))
    return Embedded(Ref(kind, record), at, groups, numpy.stack(vectors or (unit(1),)))


def ids(
    index: SemanticIndex,
    vector: Vector | None = None,
    limit: int = 10,
    selection: Filter = EVERYTHING,
    kind: Kind = Kind.OBSERVATION,
) -> list[int]:
    found = index.nearest(kind, unit(1) if vector is None else vector, limit, selection)
    return [record for record, _ in found]


def test_an_empty_index_finds_nothing_and_stands_at_zero(index: SemanticIndex) -> None:
    assert (ids(index), index.count(), index.position()) == ([], 0, 0)


@pytest.mark.parametrize("selection", [Filter(), Filter(since=5)])
def test_several_vectors_are_answered_each_as_if_alone(
    index: SemanticIndex, selection: Filter
) -> None:
    angles = [(number % 20, 7 - number % 15, number % 3) for number in range(1, 400)]
    index.upsert([made(n, unit(*angle), at=n % 9) for n, angle in enumerate(angles, 1)])
    sought = [unit(1), unit(-1, 3), unit(1)]
    found = index.nearest_each(Kind.OBSERVATION, sought, 5, selection)
    alone = [index.nearest(Kind.OBSERVATION, vector, 5, selection) for vector in sought]
    assert found == alone
    assert found[0] == found[2] != found[1]
    assert index.nearest_each(Kind.PROMPT, sought, 5, selection) == [[], [], []]


def test_the_nearest_come_first_with_their_cosines(index: SemanticIndex) -> None:
    index.upsert([made(1, unit(0, 1)), made(2, unit(1)), made(3, unit(1, 1)), made(4, unit(-1))])
    found = index.nearest(Kind.OBSERVATION, unit(1), 10, Filter())
    assert [record for record, _ in found] == [2, 3, 1, 4]
    assert [cosine for _, cosine in found] == pytest.approx([1, 0.70711, 0, -1], abs=1e-5)
    assert all(-1 <= cosine <= 1 for _, cosine in found)


def test_equally_near_records_come_in_the_order_of_their_ids(index: SemanticIndex) -> None:
    index.upsert([made(record, unit(1, 2)) for record in (5, 3, 9, 1, 7)])
    assert ids(index) == [1, 3, 5, 7, 9]


def test_a_limit_beyond_what_is_there_gives_all(index: SemanticIndex) -> None:
    index.upsert([made(record, unit(1, record)) for record in (1, 2, 3, 4)])
    for limit in (0, 1, 3, 4, 5_000):
        assert ids(index, limit=limit) == [1, 2, 3, 4][:limit]


def test_kinds_are_apart_even_with_the_same_ids(index: SemanticIndex) -> None:
    index.upsert([made(1, unit(1)), made(1, unit(0, 1), kind=Kind.PROMPT)])
    assert index.nearest(Kind.PROMPT, unit(1), 9, Filter()) == [(1, pytest.approx(0, abs=1e-6))]
    assert ids(index, kind=Kind.SESSION) == []
    index.remove([Ref(Kind.OBSERVATION, 1)])
    assert (ids(index), ids(index, kind=Kind.PROMPT)) == ([], [1])


def test_the_best_part_of_a_record_counts_and_the_record_comes_once(index: SemanticIndex) -> None:
    index.upsert([made(1, *(unit(1, part / 10) for part in range(1, 9))), made(2, unit(1, 2))])
    index.upsert([made(3, unit(0, 1), unit(1))])
    assert index.count() == 11
    assert ids(index, limit=2) == [3, 1]
    assert ids(index, limit=3) == [3, 1, 2]


def test_a_record_put_in_again_replaces_all_its_parts(index: SemanticIndex) -> None:
    index.upsert([made(1, unit(1), unit(0, 1), unit(0, 0, 1), project="old"), made(2, unit(1, 1))])
    index.upsert([made(1, unit(-1), project="new")])
    assert index.count() == 2
    assert ids(index) == [2, 1]
    assert ids(index, selection=Filter((("project", ("old",)),))) == []
    index.upsert([made(1, unit(1), unit(0, 1))])
    assert (index.count(), ids(index)) == (3, [1, 2])


def test_the_last_of_two_versions_in_one_batch_stays(index: SemanticIndex) -> None:
    index.upsert([made(1, unit(1), unit(0, 1)), made(2, unit(1, 1)), made(1, unit(-1))])
    assert (ids(index), index.count()) == ([2, 1], 2)


def test_removing_passes_over_what_is_not_there(index: SemanticIndex) -> None:
    index.upsert([made(record, unit(1, record), unit(record, 1)) for record in (1, 2, 3)])
    index.remove([Ref(Kind.OBSERVATION, 2), Ref(Kind.OBSERVATION, 99), Ref(Kind.SESSION, 1)])
    index.remove([])
    index.upsert([])
    assert (sorted(ids(index)), index.count()) == ([1, 3], 4)


def test_a_record_without_vectors_is_in_no_answer(index: SemanticIndex) -> None:
    index.upsert([made(1)])
    empty = numpy.empty((0, DIMENSION), numpy.float32)
    index.upsert([Embedded(Ref(Kind.OBSERVATION, 1), 0, (), empty)])
    assert (ids(index), index.count()) == ([], 0)


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Filter(), [1, 2, 3, 4]),
        (Filter((("project", ("SHOP",)),)), [1, 2]),
        (Filter((("project", ("shop", "Straße")),)), [1, 2, 3]),
        (Filter((("project", ("STRASSE",)),)), [3]),
        (Filter((("project", ("sh",)),)), []),
        (Filter((("project", ()),)), []),
        (Filter((("type", ("bugfix",)),)), [1, 4]),
        (Filter((("type", ("bugfix",)), ("project", ("shop",)))), [1]),
        (Filter((("concept", ("gotcha",)),)), [1, 3]),
        (Filter((("concept", ("Gotcha", "pattern")),)), [1, 2, 3]),
        (Filter((("concept", ("gotcha",)), ("concept", ("pattern",)))), [1]),
        (Filter((("concept", ('a "quoted" $value',)),)), [4]),
        (Filter(since=20), [2, 3, 4]),
        (Filter(until=20), [1, 2]),
        (Filter(since=20, until=30), [2, 3]),
        (Filter(since=31, until=39), []),
        (Filter((("type", ("bugfix",)),), since=11), [4]),
        (Filter((("project", ("nowhere",)),)), []),
    ],
)
def test_a_filter_selects(filled: SemanticIndex, selection: Filter, expected: list[int]) -> None:
    assert ids(filled, selection=selection) == expected


@pytest.fixture(scope="module", params=ADAPTERS)
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SemanticIndex]:
    """An index to filter, shared by tests that only read."""
    index = _open(request.param, tmp_path_factory.mktemp("filled"), request)
    index.upsert(
        [
            made(1, unit(1, 1), at=10, concepts=("gotcha", "pattern")),
            made(2, unit(1, 2), at=20, type="feature", concepts=("pattern",)),
            made(3, unit(1, 3), at=30, type="change", project="strasse", concepts=("gotcha",)),
            made(4, unit(1, 4), at=40, project="", concepts=('a "quoted" $value',)),
        ]
    )
    yield index
    index.close()


def test_the_filter_comes_before_the_choice_of_the_nearest(index: SemanticIndex) -> None:
    near = [made(record, unit(1, record / 1000)) for record in range(1, 60)]
    index.upsert([*near, made(60, unit(-1), project="far", at=5), made(61, unit(0, 1), at=5)])
    assert ids(index, limit=1, selection=Filter((("project", ("far",)),))) == [60]
    assert ids(index, limit=2, selection=Filter(since=5)) == [61, 60]


@pytest.mark.parametrize("moment", [-62_135_596_800_000, 253_402_300_799_999])
def test_any_moment_can_be_selected_by(index: SemanticIndex, moment: int) -> None:
    index.upsert([made(2**53 + 1, at=moment)])
    assert ids(index, selection=Filter(since=moment, until=moment)) == [2**53 + 1]


def test_a_group_that_no_index_holds_is_a_mistake(index: SemanticIndex) -> None:
    with pytest.raises(ValueError, match="file"):
        ids(index, selection=Filter((("file", ("a.py",)),)))


@pytest.mark.parametrize("wrong", [numpy.ones(3), numpy.full(DIMENSION, numpy.nan)])
def test_vectors_that_cannot_be_compared_are_a_mistake(index: SemanticIndex, wrong: Vector) -> None:
    index.upsert([made(1)])
    with pytest.raises(ValueError, match="finite"):
        index.upsert([Embedded(Ref(Kind.OBSERVATION, 2), 0, (), wrong[None, :])])
    with pytest.raises(ValueError, match="finite"):
        index.nearest(Kind.OBSERVATION, wrong, 1, Filter())
    assert ids(index) == [1]


def test_clearing_leaves_an_index_that_works(index: SemanticIndex) -> None:
    index.upsert([made(1)])
    index.advance(7)
    index.clear()
    assert (ids(index), index.count(), index.position()) == ([], 0, 0)
    index.upsert([made(2)])
    index.advance(3)
    assert (ids(index), index.position()) == ([2], 3)


def test_many_vectors_are_found_whatever_share_is_selected(index: SemanticIndex) -> None:
    model = _fill_many(index)
    for selection, chosen in (
        (Filter(), range(4 * MAX_COMPARED)),
        (Filter(since=2 * MAX_COMPARED), range(2 * MAX_COMPARED, 4 * MAX_COMPARED)),
        (Filter((("project", ("one",)),)), range(0, 4 * MAX_COMPARED, 40)),
        (Filter(since=0, until=MAX_COMPARED), range(MAX_COMPARED + 1)),
    ):
        for limit in (5, 4 * MAX_COMPARED):
            found = index.nearest(Kind.OBSERVATION, unit(1), limit, selection)
            assert len(found) == len(set(found)) == min(limit, len(chosen))
            assert {record for record, _ in found} <= set(chosen)
            assert found[0][1] == pytest.approx(max(model[each] for each in chosen), abs=1e-4)


def _fill_many(index: SemanticIndex) -> dict[int, float]:
    draw = numpy.random.default_rng(3)
    vectors = draw.standard_normal((4 * MAX_COMPARED, DIMENSION)).astype(numpy.float32)
    vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)
    projects = ["one" if record % 40 == 0 else "many" for record in range(4 * MAX_COMPARED)]
    rows = enumerate(zip(vectors, projects, strict=True))
    index.upsert([made(record, vector, at=record, project=name) for record, (vector, name) in rows])
    return {record: float(vector @ unit(1)) for record, vector in enumerate(vectors)}


def test_a_record_of_many_parts_hides_no_other(index: SemanticIndex) -> None:
    flood = made(1, *(unit(1, part / 10_000) for part in range(2 * MAX_COMPARED)))
    index.upsert([flood, made(2, unit(1, 1)), made(3, unit(1, 2))])
    assert ids(index, limit=3) == [1, 2, 3]


def test_threads_may_search_while_others_write(index: SemanticIndex) -> None:
    index.upsert([made(record, unit(1, record), at=record) for record in range(1, 20)])

    def work(number: int) -> None:
        index.upsert([made(100 + number, unit(-1)), made(200 + number, unit(-1), unit(0, -1))])
        index.remove([Ref(Kind.OBSERVATION, 200 + number)])
        assert ids(index, limit=2) == [1, 2]
        assert ids(index, limit=2, selection=Filter(since=3, until=19)) == [3, 4]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(12)))
    assert index.count() == 19 + 12


numbers = st.integers(-3, 3)
vectors = st.tuples(numbers, numbers, numbers).filter(any).map(lambda given: unit(*given))
steps = st.lists(
    st.tuples(
        st.integers(1, 6),
        st.lists(vectors, max_size=3),
        st.integers(0, 4),
        st.sampled_from(["one", "two"]),
        st.lists(st.sampled_from(["a", "b", "c"]), unique=True),
    ),
    max_size=12,
)
filters = st.builds(
    Filter,
    st.lists(
        st.one_of(
            st.tuples(st.just("project"), st.just(("ONE",))),
            st.tuples(st.just("concept"), st.sampled_from([("a",), ("a", "B"), ("c",)])),
        ),
        max_size=2,
    ).map(tuple),
    st.none() | st.integers(0, 4),
    st.none() | st.integers(0, 4),
)
several = settings(FEWER, suppress_health_check=[HealthCheck.function_scoped_fixture])


@several
@given(steps=steps, sought=vectors, limit=st.integers(1, 8), selection=filters)
def test_any_index_answers_like_a_plain_dict(
    index: SemanticIndex,
    steps: list[tuple[int, list[Vector], int, str, list[str]]],
    sought: Vector,
    limit: int,
    selection: Filter,
) -> None:
    index.remove([Ref(Kind.OBSERVATION, record) for record in range(1, 7)])
    model: dict[int, Embedded] = {}
    for record, parts, at, project, concepts in steps:
        model.pop(record, None)
        if parts:
            model[record] = made(record, *parts, at=at, project=project, concepts=concepts)
            index.upsert([model[record]])
        else:
            index.remove([Ref(Kind.OBSERVATION, record)])
    assert index.count() == sum(len(each.vectors) for each in model.values())
    found = index.nearest(Kind.OBSERVATION, sought, limit, selection)
    _assert_nearest(found, _cosines(model, sought, selection), limit)


def _cosines(model: dict[int, Embedded], sought: Vector, selection: Filter) -> dict[int, float]:
    return {
        record: float(max(each.vectors @ sought))
        for record, each in model.items()
        if (selection.since is None or each.created_at_epoch >= selection.since)
        and (selection.until is None or each.created_at_epoch <= selection.until)
        and all(
            set(map(str.casefold, wanted)) & set(dict(each.groups)[field])
            for field, wanted in selection.groups
        )
    }


def _assert_nearest(found: list[tuple[int, float]], model: dict[int, float], limit: int) -> None:
    """Which of equally near records are the last on the list may differ; nothing else may."""
    assert len(dict(found)) == len(found) == min(limit, len(model))
    assert [cosine for _, cosine in found] == pytest.approx(
        sorted(model.values(), reverse=True)[:limit], abs=1e-5
    )
    for record, cosine in found:
        assert cosine == pytest.approx(model[record], abs=1e-5)
    assert found == sorted(found, key=lambda hit: (-hit[1], hit[0]))


@pytest.mark.parametrize("adapter", DURABLE)
def test_everything_is_there_again_after_opening_anew(adapter: str, open_one: Open) -> None:
    first = open_one(adapter)
    first.upsert([made(1, unit(1), unit(0, 1), project="new"), made(2, unit(1, 1), at=5)])
    first.upsert([made(9, kind=Kind.PROMPT)])
    first.advance(41)
    first.close()
    again = open_one(adapter)
    assert (again.position(), again.count()) == (41, 4)
    assert ids(again) == [1, 2]
    assert ids(again, selection=Filter((("project", ("new",)),))) == [1]
    assert ids(again, selection=Filter(since=5)) == [2]
    again.upsert([made(1, unit(-1))])
    assert (again.count(), ids(again)) == (3, [2, 1])


def test_the_exact_index_starts_empty_every_time() -> None:
    first = ExactIndex(DIMENSION)
    first.upsert([made(1)])
    first.advance(41)
    assert (ExactIndex(DIMENSION).count(), ExactIndex(DIMENSION).position()) == (0, 0)


def test_the_exact_index_finds_what_numpy_finds() -> None:
    index = ExactIndex(DIMENSION)
    model = _fill_many(index)
    index.remove([Ref(Kind.OBSERVATION, record) for record in range(0, 4 * MAX_COMPARED, 3)])
    left = {record: cosine for record, cosine in model.items() if record % 3}
    _assert_nearest(index.nearest(Kind.OBSERVATION, unit(1), 100, Filter()), left, 100)


def test_sqlite_vec_finds_what_numpy_finds(open_one: Open) -> None:
    index = open_one("sqlite-vec")
    model = _fill_many(index)
    _assert_nearest(index.nearest(Kind.OBSERVATION, unit(1), 100, Filter()), model, 100)


@pytest.mark.parametrize("adapter", DURABLE)
def test_what_is_closed_says_so(adapter: str, open_one: Open) -> None:
    index = open_one(adapter)
    index.close()
    index.close()
    for ask in (index.count, index.position, lambda: ids(index)):
        with pytest.raises(SemanticUnavailable, match="closed"):
            ask()


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from test_semantic_index import DIMENSION, made, open_chroma, open_sqlite_vec
folder = Path(sys.argv[1])
indexes = open_chroma(folder / "chroma", DIMENSION), open_sqlite_vec(folder / "v.db", DIMENSION)
for index in indexes:
    index.upsert([made(record) for record in range(50)])
    index.advance(50)
    index.upsert([made(record) for record in range(50, 60)])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_kill_the_position_is_no_newer_than_the_data(tmp_path: Path) -> None:
    folders = map(str, Path(__file__).parents[:2])
    words = [sys.executable, "-c", KILLED, str(tmp_path), *folders]
    ran = subprocess.run(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    for index in (
        open_chroma(tmp_path / "chroma", DIMENSION),
        open_sqlite_vec(tmp_path / "v.db", DIMENSION),
    ):
        with contextlib.closing(index):
            assert (index.position(), index.count()) == (50, 60)
            assert len(ids(index, limit=100)) == 60


def test_chroma_keeps_everything_in_its_folder_and_loads_no_model(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path\n"
        "from memsvc.adapters.indexes.chroma_local import open_chroma\n"
        "index = open_chroma(Path('here/chroma'), 8)\n"
        "index.count(); index.close(); children = Path('/proc/self/task').glob('*/children')\n"
        "print(*[name for name in ('onnxruntime', 'posthog') if name in sys.modules],\n"
        "      *[child.read_text() for child in children])"
    )
    (tmp_path / ".env").write_text("CHROMA_SERVER_HTTP_PORT=nonsense\nPERSIST_DIRECTORY=elsewhere")
    run = tmp_path / "run"
    run.mkdir()
    environment = {**os.environ, "HOME": str(tmp_path / "home")}
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=run, env=environment, capture_output=True, check=True
    )
    assert ran.stdout.split() == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env", "run"]
    assert sorted(path.name for path in run.rglob("*") if path.parent.name != "chroma") == [
        "chroma",
        "chroma.lock",
        "here",
    ]


def test_a_chroma_folder_has_one_owner(tmp_path: Path) -> None:
    owner = open_chroma(tmp_path / "chroma", DIMENSION)
    with pytest.raises(
        SemanticUnavailable, match="in use by another process; stop that process first"
    ):
        open_chroma(tmp_path / "chroma", DIMENSION)
    owner.upsert([made(1)])
    owner.close()
    with contextlib.closing(open_chroma(tmp_path / "chroma", DIMENSION)) as heir:
        assert ids(heir) == [1]


def _spoil_database(folder: Path) -> None:
    (folder / "chroma.sqlite3").write_bytes(b"garbage" * 2_000)


def _spoil_graph(folder: Path) -> None:
    for path in folder.glob("*/*"):
        path.write_bytes(b"\xff" * 300)


def _lose_graph(folder: Path) -> None:
    for path in filter(Path.is_dir, list(folder.iterdir())):
        shutil.rmtree(path)


def _truncate_graph(folder: Path) -> None:
    for path in folder.glob("*/*.bin"):
        os.truncate(path, 10)


def _end_while_opening(folder: Path) -> None:
    (folder / "opening").touch()


def _put_a_file_there(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("not a folder")


@pytest.mark.parametrize(
    "spoil",
    [
        _spoil_database,
        _spoil_graph,
        _lose_graph,
        _truncate_graph,
        _end_while_opening,
        _put_a_file_there,
    ],
)
def test_a_spoilt_chroma_folder_is_said_and_cleared(
    tmp_path: Path, open_one: Open, spoil: Callable[[Path], None]
) -> None:
    first = open_one("chroma")
    first.upsert([made(record, unit(1, record)) for record in range(1, 1_002)])
    first.advance(9)
    first.close()
    spoil(tmp_path / "chroma")
    index = open_one("chroma")
    for _ in range(2):
        with pytest.raises(SemanticUnavailable, match=r"cannot be used .*delete the folder"):
            ids(index)
    _assert_clearing_heals(index)


def _assert_clearing_heals(index: SemanticIndex) -> None:
    index.clear()
    assert (index.position(), index.count()) == (0, 0)
    index.upsert([made(5)])
    assert ids(index) == [5]


def test_a_chroma_folder_removed_while_open_is_said_and_made_anew(
    tmp_path: Path, open_one: Open
) -> None:
    index = open_one("chroma")
    index.upsert([made(1)])
    index.advance(9)
    assert index.position() == 9
    shutil.rmtree(tmp_path / "chroma")
    with pytest.raises(SemanticUnavailable, match="cannot be used"):
        index.upsert([made(2)])
    with pytest.raises(SemanticUnavailable, match="emptied"):
        index.advance(10)
    assert (index.position(), index.count()) == (0, 0)
    index.upsert([made(3)])
    assert ids(index) == [3]


@pytest.mark.parametrize("adapter", DURABLE)
def test_vectors_of_another_dimension_are_refused_until_cleared(
    adapter: str, open_one: Open, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    first = open_one(adapter)
    first.upsert([made(1)])
    first.close()
    wide = {
        "chroma": lambda: open_chroma(tmp_path / "chroma", 9),
        "sqlite-vec": lambda: open_sqlite_vec(tmp_path / "vectors.db", 9),
        "chroma-http": lambda: _open_http(
            request.getfixturevalue("server"), f"test-{tmp_path.name}", 9
        ),
    }[adapter]
    with contextlib.closing(wide()) as index:
        with pytest.raises(SemanticUnavailable, match="cannot be used"):
            index.count()
        index.clear()
        assert index.count() == 0


def test_a_spoilt_sqlite_vec_file_is_said_and_cleared(tmp_path: Path, open_one: Open) -> None:
    (tmp_path / "vectors.db").write_bytes(b"garbage" * 2_000)
    index = open_one("sqlite-vec")
    with pytest.raises(SemanticUnavailable, match=r"not a database.*delete the file"):
        ids(index)
    _assert_clearing_heals(index)


def test_sqlite_vec_without_its_packages_names_what_to_install() -> None:
    code = "import sys; sys.modules['apsw'] = None; import memsvc.adapters.indexes.sqlite_vec"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("memsvc.core.errors.SemanticUnavailable")
    assert last.endswith("pip install 'memsvc[sqlite-vec]'")


def test_a_server_that_went_away_is_named_and_works_again_when_back(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    index = _open_http(server, "memsvc-a")
    try:
        index.upsert([made(1)])
        index.advance(4)
        server.stop()
        for ask in (index.count, index.position, lambda: ids(index)):
            with pytest.raises(SemanticUnavailable, match=f"{server.url} cannot be used .*start"):
                ask()
        server.start()
        assert (index.position(), ids(index)) == (4, [1])
    finally:
        index.close()
        server.stop()


def test_a_server_that_hangs_is_not_waited_for(server: Server) -> None:
    with (
        contextlib.closing(_open_http(server, "hangs")) as patient,
        contextlib.closing(_open_http(server, "hangs", timeout=0.3)) as hasty,
    ):
        patient.upsert([made(1)])
        wait_until(lambda: _finds_the_first(hasty))
        with server.frozen():
            for _ in range(2):
                with pytest.raises(SemanticUnavailable, match="cannot be used"):
                    ids(hasty)
        wait_until(lambda: _finds_the_first(hasty))


def _finds_the_first(index: SemanticIndex) -> bool:
    with contextlib.suppress(SemanticUnavailable):
        return ids(index) == [1]
    return False


def test_collections_removed_on_the_server_are_made_anew(server: Server) -> None:
    with contextlib.closing(_open_http(server, "gone")) as index:
        index.upsert([made(1), made(2, kind=Kind.PROMPT)])
        index.advance(4)
        assert (index.position(), index.count()) == (4, 2)
        _remove(server, "gone-prompt")
        index.upsert([made(3)])
        with pytest.raises(SemanticUnavailable, match="emptied"):
            index.advance(5)
        assert (index.position(), index.count()) == (0, 2)
        assert ids(index, kind=Kind.PROMPT) == []
        _remove(server, "gone-observation")
        assert ids(index) == []


def _remove(server: Server, name: str) -> None:
    database = "api/v2/tenants/default_tenant/databases/default_database"
    requests.delete(
        f"{server.url}/{database}/collections/{name}", timeout=PATIENCE
    ).raise_for_status()


def test_stores_that_share_a_server_do_not_see_each_other(server: Server) -> None:
    with (
        contextlib.closing(_open_http(server, "mine")) as mine,
        contextlib.closing(
            open_chroma_http(server.url + "/", "yours", DIMENSION, timeout=PATIENCE)
        ) as yours,
    ):
        mine.upsert([made(1)])
        mine.advance(4)
        assert (yours.position(), yours.count(), ids(yours)) == (0, 0, [])
        yours.clear()
        assert (mine.position(), ids(mine)) == (4, [1])


@pytest.mark.parametrize("url", ["", "127.0.0.1:8000", "ftp://host", "http://", "http://host:port"])
def test_what_is_no_address_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(SemanticUnavailable, match=r"one such as http://127\.0\.0\.1:8000"):
        open_chroma_http(url, "any", DIMENSION)
