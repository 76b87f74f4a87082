"""Copies the skill to the folders where agents look for it."""

import shutil
from pathlib import Path

import memsvc
from memsvc.api.skill_pages import NAME
from memsvc.core.errors import MemsvcError

AGENT_FOLDERS = (".claude", ".agents", ".codex", ".cursor", ".gemini", ".opencode")
"""Folders in which agents look for `skills/`: the first is created, the others are used if they
exist.
"""


def skill_folder() -> Path:
    """The folder of the skill: inside the package when installed, beside it in a checkout."""
    package = Path(memsvc.__file__).parent
    places = (package / "skills" / NAME, package.parent / "skills" / NAME)
    return next((place for place in places if place.is_dir()), places[0])


def install(into: Path) -> list[Path]:
    """Copy the skill into the agent folders below `into`; return the folders of the copies.

    Raises MemsvcError if a folder cannot be written.
    """
    first, *others = (into / name for name in AGENT_FOLDERS)
    targets = [first, *(folder for folder in others if folder.is_dir())]
    return [_installed(folder / "skills" / NAME) for folder in targets]


def _installed(target: Path) -> Path:
    try:
        return target if target.resolve() == skill_folder().resolve() else _copy(target)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise MemsvcError(
            f"The skill cannot be installed at {target}: {reason}; check the permissions of "
            "the folder."
        ) from error


def _copy(target: Path) -> Path:
    """Replace the whole folder, so that no pages of an older version remain."""
    fresh = target.with_name(f".{NAME}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(skill_folder(), fresh, ignore=shutil.ignore_patterns("evals", "__*__*"))
    if target.is_symlink():
        target.unlink()
    elif target.exists():
        shutil.rmtree(target)
    fresh.rename(target)
    return target
