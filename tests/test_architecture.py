"""The core knows no framework: who may import whom."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import memsvc

ROOT = Path(memsvc.__file__).parent
EDGE = {"web.py", "server.py", "cli.py", "commands.py", "client.py", "mcp_server.py", "__main__.py"}
FRAMEWORKS = {"flask", "werkzeug", "click", "waitress", "requests", "mcp", "anyio"}
CORE = sorted(path.name for path in ROOT.glob("*.py") if path.name not in EDGE)
BELOW_STORE = {"bootstrap.py", *EDGE}


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("name", CORE)
def test_the_core_imports_no_framework_and_no_database(name: str) -> None:
    packages = {module.split(".")[0] for module in _imported(ROOT / name)}
    assert packages & (FRAMEWORKS | {"sqlite3"}) == set()


@pytest.mark.parametrize("name", [name for name in CORE if name not in BELOW_STORE])
def test_only_the_composition_root_names_the_store_behind_the_port(name: str) -> None:
    assert not [module for module in _imported(ROOT / name) if module.startswith("memsvc.store")]


@pytest.mark.parametrize("path", sorted((ROOT / "store").glob("*.py")), ids=lambda path: path.name)
def test_the_store_knows_no_use_case_and_no_framework(path: Path) -> None:
    above = {"search", "timeline", "context", "reading", "writing", "operations", "parameters"}
    modules = set(_imported(path))
    assert {module.split(".")[0] for module in modules} & FRAMEWORKS == set()
    assert modules & {f"memsvc.{name}" for name in above} == set()


@pytest.mark.parametrize("path", sorted((ROOT / "importers").glob("*.py")), ids=lambda p: p.name)
def test_importers_know_the_store_by_its_port_alone(path: Path) -> None:
    modules = set(_imported(path))
    assert not [module for module in modules if module.startswith("memsvc.store")]
    assert {module.split(".")[0] for module in modules} & FRAMEWORKS == set()


@pytest.mark.parametrize(
    "module", ["memsvc.application.search", "memsvc.api.operations", "memsvc.adapters.sqlite.store"]
)
def test_the_core_runs_without_loading_a_framework(module: str) -> None:
    code = f"import sys, {module}; print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) & FRAMEWORKS == set()
