"""The shape of the project as a test: who may import whom, and how long things may get.

Each rule is a small function from a module's name and syntax tree to complaints. Every rule is
run over every module, and for each there is a small violating module that it must notice: a rule
that never complains proves nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from architecture import LAYERS, Layer

PYTHON = Path(__file__).resolve().parent
ROOT = PYTHON.parent

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
FIELDS_MAX = 15


# These reach outside or, like `hash` and `id`, differ from one process to the next.
IMPURE_CALLS = frozenset({"open", "input", "hash", "id", "eval", "exec", "__import__"})
TOP_LEVEL = frozenset(
    {
        "connector",
        "python",
        "examples",
        "integration_tests",
        "docs",
        ".ci",
        "build.gradle",
        "settings.gradle",
        "pyproject.toml",
        "Makefile",
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        ".editorconfig",
        ".gitignore",
        ".github",
        ".pre-commit-config.yaml",
        ".git",
    }
)


# Chance comes in as a random.Random; no code uses the generator that the module shares.
OWNS_ITS_CHANCE = ("logdevice/protocol/", "logdevice/simulation/")
TALKS_TO_PEOPLE = ("tools/", "logdevice/bench/")

Rule = Callable[[str, ast.Module], Iterator[str]]


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and full name of everything imported; `from a import b` counts as a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def within(name: str, module: str) -> bool:
    return name == module or name.startswith(module + ".")


def layers_are_kept(name: str, tree: ast.Module) -> Iterator[str]:
    layer = next((layer for layer in LAYERS if name.startswith(layer.path)), None)
    if layer is None:
        yield f"{name} has no layer: say in architecture.py what it may import"
        return
    for line, imported in imports(tree):
        package = imported.partition(".")[0]
        if package in ("logdevice", "pyspark_logdevice"):
            allowed = any(within(imported, module) for module in layer.ours)
        else:
            allowed = package not in layer.never and (layer.others is None or package in layer.others)
        if not allowed:
            yield f"{name}:{line} may not import {imported}"


def chance_is_handed_in(name: str, tree: ast.Module) -> Iterator[str]:
    if not name.startswith(OWNS_ITS_CHANCE):
        return
    for line, imported in imports(tree):
        if within(imported, "random") and imported not in ("random", "random.Random"):
            yield f"{name}:{line} may not import {imported}: take a random.Random"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "random" and node.attr != "Random":
            yield f"{name}:{node.lineno} may not use random.{node.attr}: take a random.Random"


def calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.lineno, node.func.id


def protocol_calls_nothing_impure(name: str, tree: ast.Module) -> Iterator[str]:
    if name.startswith("logdevice/protocol/"):
        yield from (
            f"{name}:{line} may not call {call}()" for line, call in calls(tree) if call in IMPURE_CALLS
        )


def libraries_do_not_print(name: str, tree: ast.Module) -> Iterator[str]:
    if not name.startswith(TALKS_TO_PEOPLE) and not name.endswith("__main__.py"):
        yield from (f"{name}:{line} may not print" for line, call in calls(tree) if call == "print")


def private_names_stay_home(name: str, tree: ast.Module) -> Iterator[str]:
    for line, imported in imports(tree):
        last = imported.rpartition(".")[2]
        if last.startswith("_") and not last.startswith("__"):
            yield f"{name}:{line} may not import the private {imported}"


def helpers_are_shared_not_tests(name: str, tree: ast.Module) -> Iterator[str]:
    for line, imported in imports(tree):
        package, _, last = imported.rpartition(".")
        if ".test_" in f".{package}" or last.startswith("test_"):
            yield f"{name}:{line} may not import {imported}: move what tests share into a helper"


def functions_fit_a_screen(name: str, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines >= FUNCTION_LINES_MAX:
                yield f"{name}:{node.lineno} {node.name} has {lines} lines, too many to see at once"


def classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def declared_fields(node: ast.ClassDef) -> set[str]:
    return {
        line.target.id
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    }


def is_frozen(node: ast.ClassDef) -> bool:
    return any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list)


def a_class_keeps_few_fields_in_step(name: str, tree: ast.Module) -> Iterator[str]:
    """A frozen class has nothing to keep in step. Fields that a base class declares count there alone."""
    for node in classes(tree):
        if is_frozen(node):
            continue
        fields = declared_fields(node) | {
            part.attr
            for part in ast.walk(node)
            if isinstance(part, ast.Attribute)
            and isinstance(part.ctx, ast.Store)
            and ast.unparse(part.value) == "self"
        }
        fields -= {field for base in node.bases for field in DECLARED.get(ast.unparse(base), ())}
        if len(fields) > FIELDS_MAX:
            yield f"{name}:{node.lineno} {node.name} has {len(fields)} fields: parts of it can be classes"


def file_is_one_idea(name: str, lines: int) -> Iterator[str]:
    if lines > FILE_LINES_MAX:
        yield f"{name} has {lines} lines, allowed are {FILE_LINES_MAX}"


def top_level_is_known(names: set[str], ignored: list[str]) -> Iterator[str]:
    for name in sorted(names - TOP_LEVEL):
        if not any(fnmatch(name, pattern) for pattern in ignored):
            yield f"{name} does not belong at the top level"


PRODUCT_RULES: tuple[Rule, ...] = (
    layers_are_kept,
    chance_is_handed_in,
    protocol_calls_nothing_impure,
    libraries_do_not_print,
    private_names_stay_home,
    a_class_keeps_few_fields_in_step,
)
MODULES = sorted(path.relative_to(PYTHON).as_posix() for path in PYTHON.rglob("*.py"))


def is_test(name: str) -> bool:
    return "/tests/" in name or "/" not in name


TREES = {
    name: ast.parse((PYTHON / name).read_text(encoding="utf-8")) for name in MODULES if not is_test(name)
}
DECLARED = {node.name: declared_fields(node) for tree in TREES.values() for node in classes(tree)}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_keeps_the_rules(name: str) -> None:
    source = (PYTHON / name).read_text(encoding="utf-8")
    tree = ast.parse(source)
    complaints = [*functions_fit_a_screen(name, tree), *file_is_one_idea(name, len(source.splitlines()))]
    complaints += helpers_are_shared_not_tests(name, tree)
    if not is_test(name):
        complaints += [complaint for rule in PRODUCT_RULES for complaint in rule(name, tree)]
    assert not complaints, "\n".join(complaints)


def test_the_top_level_holds_only_what_belongs_there() -> None:
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split()]
    assert not list(top_level_is_known({path.name for path in ROOT.iterdir()}, ignored))


def test_a_class_name_says_which_class_is_meant() -> None:
    places: dict[str, list[str]] = {}
    for name, tree in TREES.items():
        for node in classes(tree):
            places.setdefault(node.name, []).append(name)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not twice


def test_no_layer_allows_what_its_modules_do_not_import() -> None:
    used: dict[Layer, set[str]] = {layer: set() for layer in LAYERS}
    for name, tree in TREES.items():
        layer = next(layer for layer in LAYERS if name.startswith(layer.path))
        used[layer] |= {imported for _, imported in imports(tree)}
    stale = [
        f"{layer.path}: {module}"
        for layer, imported in used.items()
        for module in layer.ours
        if not any(within(each, module) for each in imported)
    ]
    assert not stale, "\n".join(stale)


VIOLATIONS: tuple[tuple[Rule, str, str], ...] = (
    (layers_are_kept, "logdevice/types.py", "import time"),
    (layers_are_kept, "logdevice/types.py", "from logdevice.errors import LogDeviceError"),
    (layers_are_kept, "logdevice/errors.py", "import logging"),
    (layers_are_kept, "logdevice/settings/reading.py", "import argparse"),
    (layers_are_kept, "logdevice/protocol/quorum.py", "import time"),
    (layers_are_kept, "logdevice/protocol/quorum.py", "def f():\n    import os.path"),
    (layers_are_kept, "logdevice/protocol/quorum.py", "from logdevice.errors import DataError"),
    (layers_are_kept, "logdevice/protocol/quorum.py", "from logdevice import errors"),
    (layers_are_kept, "logdevice/protocol/read_stream/stream.py", "import logdevice.storage"),
    (layers_are_kept, "logdevice/storage/index.py", "from logdevice.protocol.quorum import Quorum"),
    (layers_are_kept, "logdevice/storage/index.py", "from logdevice.protocol import quorum"),
    (layers_are_kept, "logdevice/records/record_header.py", "import os"),
    (layers_are_kept, "logdevice/records/batch.py", "from logdevice.types import Record"),
    (layers_are_kept, "logdevice/wire/codec.py", "from logdevice.protocol.quorum import Quorum"),
    (layers_are_kept, "logdevice/node/disk.py", "from logdevice.storage.segment_log_store import Store"),
    (layers_are_kept, "logdevice/node/requests/dispatch.py", "import grpc"),
    (layers_are_kept, "logdevice/client/client.py", "from logdevice.node.assembly import Node"),
    (layers_are_kept, "logdevice/client/client.py", "import logdevice.metadata.epoch_store"),
    (layers_are_kept, "logdevice/simulation/world.py", "import asyncio"),
    (layers_are_kept, "logdevice/simulation/world.py", "from time import monotonic"),
    (layers_are_kept, "logdevice/simulation/world.py", "from logdevice.client import Client"),
    (chance_is_handed_in, "logdevice/protocol/quorum.py", "import random\nrandom.shuffle([])"),
    (chance_is_handed_in, "logdevice/protocol/quorum.py", "from random import choice"),
    (chance_is_handed_in, "logdevice/simulation/world.py", "import random\nrandom.seed(1)"),
    (protocol_calls_nothing_impure, "logdevice/protocol/quorum.py", "hash('N1')"),
    (protocol_calls_nothing_impure, "logdevice/protocol/quorum.py", "open('x')"),
    (libraries_do_not_print, "logdevice/client/client.py", "print('hello')"),
    (private_names_stay_home, "logdevice/client/client.py", "from logdevice.types import _LSN_TEXT"),
    (helpers_are_shared_not_tests, "logdevice/tests/test_a.py", "from logdevice.tests.test_b import helper"),
    (functions_fit_a_screen, "logdevice/types.py", "def f():\n" + "    pass\n" * 59),
    (layers_are_kept, "logdevice/news.py", ""),
    (
        a_class_keeps_few_fields_in_step,
        "logdevice/types.py",
        "class C:\n    a0: int\n    def f(self):\n" + "".join(f"        self.a{n} = 0\n" for n in range(16)),
    ),
)


@pytest.mark.parametrize(("rule", "name", "source"), VIOLATIONS)
def test_a_violation_is_noticed(rule: Rule, name: str, source: str) -> None:
    assert len(list(rule(name, ast.parse(source)))) == 1


PERMITTED: tuple[tuple[Rule, str, str], ...] = (
    (
        layers_are_kept,
        "logdevice/protocol/quorum.py",
        "from logdevice.types import Lsn\nfrom enum import Enum",
    ),
    (
        layers_are_kept,
        "logdevice/storage/index.py",
        "import os\nfrom logdevice.protocol.log_state.store_read import StoreRead",
    ),
    (layers_are_kept, "logdevice/simulation/__main__.py", "import multiprocessing"),
    (chance_is_handed_in, "logdevice/protocol/quorum.py", "import random\nrandom.Random(7).shuffle([])"),
    (chance_is_handed_in, "tools/mutants/__main__.py", "import random\nrandom.shuffle([])"),
    (libraries_do_not_print, "logdevice/simulation/__main__.py", "print('hello')"),
    (libraries_do_not_print, "tools/mutants/__main__.py", "print('hello')"),
    (private_names_stay_home, "logdevice/types.py", "from __future__ import annotations"),
    (helpers_are_shared_not_tests, "logdevice/tests/test_a.py", "from logdevice.tests.world import test"),
    (functions_fit_a_screen, "logdevice/types.py", "def f():\n" + "    pass\n" * 58),
    (
        a_class_keeps_few_fields_in_step,
        "logdevice/types.py",
        "class C:\n    a0: int\n    def f(self):\n" + "".join(f"        self.a{n} = 0\n" for n in range(15)),
    ),
)


@pytest.mark.parametrize(("rule", "name", "source"), PERMITTED)
def test_what_is_permitted_is_not_complained_about(rule: Rule, name: str, source: str) -> None:
    assert list(rule(name, ast.parse(source))) == []


def test_a_file_of_more_than_500_lines_is_noticed() -> None:
    assert list(file_is_one_idea("logdevice/types.py", 500)) == []
    assert len(list(file_is_one_idea("logdevice/types.py", 501))) == 1


def test_a_stranger_at_the_top_level_is_noticed() -> None:
    assert list(top_level_is_known({"python", ".venv", "notes.txt"}, [".venv"])) == [
        "notes.txt does not belong at the top level"
    ]
