"""Where somebody stands: what identifies the project of a folder. Light: the hook imports it."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memsvc.adapters.importers.repository import MAX_SECONDS, first_commit, name_of, project_of
from memsvc.core.errors import SourceUnreadable


def names_of(folder: Path) -> Iterator[str]:
    """What identifies the project of a folder, best first and found when asked for.

    First the name of its git repository or else of the folder, empty for the root folder; then the
    hash of the repository's first commit, which renamed and bare clones share.
    """
    try:
        yield project_of(folder, MAX_SECONDS)
    except SourceUnreadable:
        yield name_of(folder)
        return
    with suppress(SourceUnreadable):
        yield first_commit(folder, MAX_SECONDS)
