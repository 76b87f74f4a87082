"""The life of a store in SQLite with backups: a restored store is its model of that moment."""

import copy
from datetime import datetime
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from memory_store import MemoryStore
from profiles import FEWER
from test_store_life import Life

from memsvc.adapters.sqlite.upkeep.copying import copy_store, inspect
from memsvc.adapters.sqlite.upkeep.restoring import restore
from memsvc.core.records import Kind


class BackedUpLife(Life):
    """The same steps, and backups made and restored between them."""

    def __init__(self) -> None:
        super().__init__("sqlite")
        self._backups: list[tuple[Path, MemoryStore]] = []

    @property
    def _path(self) -> Path:
        return Path(self._folder.name) / "memsvc.db"

    @rule()
    def back_up(self) -> None:
        """While the store is open; a snapshot that someone reads does not matter."""
        target = Path(self._folder.name) / f"backup-{len(self._backups)}.db"
        made = copy_store(self._path, target)
        model = copy.deepcopy(self._memory)
        model.seen = model
        self._backups.append((target, model))
        assert inspect(target) == made
        assert sum(made.counts.values()) == len(model._selected())
        assert set(made.counts) == set(Kind)

    @rule(number=st.integers(0, 9), change_first=st.booleans())
    def restore_a_backup(self, number: int, change_first: bool) -> None:
        """Any backup, any number of times, whatever happened since."""
        if self._backups:
            if change_first:
                self.forget_what_is_there(number)
            path, model = self._backups[number % len(self._backups)]
            self.end_the_snapshots()
            self._opened.store.close()
            _, kept = restore(self._path, path, datetime.now())
            assert kept
            self._opened = self._open(Path(self._folder.name))
            self._memory = copy.deepcopy(model)
            self._generations = [0, 0]  # it is another store now


def test_a_restored_store_is_its_model_of_the_moment_of_the_backup() -> None:
    run_state_machine_as_test(BackedUpLife, settings=settings(FEWER, stateful_step_count=16))
