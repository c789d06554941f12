"""Mutation tests, by hand: `python tests/mutation/run.py losses similarities --sample 200`.

Each mutant has one other operator, comparison or constant than the source. A forked process runs
the tests of its room that name something of the module. A mutant that no test notices lives. With
`--against`, the mutants of an earlier run are tried; those that died and live now are listed, and
the exit code is 1.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import json
import os
import random
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PROTOCOLS = "evaluation/test_protocols.py"
ROOMS = {
    "losses": ("losses/*.py", ["losses/**/test_*.py"]),
    "similarities": ("similarities/*.py", ["similarities/**/test_*.py"]),
    "ranking": ("evaluation/ranking/*.py", ["evaluation/test_ranks.py", _PROTOCOLS]),
    "protocols": ("evaluation/protocols/*.py", [_PROTOCOLS, "evaluation/test_[cs][alo]*s.py"]),
    "seal": ("util/seal.py", ["util/test_seal.py"]),
}
"""Room -> its modules in the package, and the files of their tests, which need no conftest."""
OTHERS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
SECONDS = 60
"""The most time of a processor that the tests of one mutant may take."""


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """The mutants of one node."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in OTHERS:
        yield (other := copy.deepcopy(node))
        other.op = OTHERS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        for number, operator in enumerate(node.ops):
            if type(operator) in OTHERS:
                yield (other := copy.deepcopy(node))
                other.ops[number] = OTHERS[type(operator)]()
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        value = node.value
        yield ast.Constant(not value if isinstance(value, bool) else value + 1)


def sites(tree: ast.AST, name: str = "") -> Iterator[tuple[ast.AST, str, object, str]]:
    """Every expression of code: its parent, the field and place in the parent, and the names of
    the functions around it. Annotations are left out."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns"):
            continue
        for place, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                yield tree, field, place, name
                yield from sites(child, f"{name}.{child.name}" if hasattr(child, "name") else name)


def mutants(path: Path) -> Iterator[tuple[str, ast.Module]]:
    """Each mutant of the module, with a name that stays where other lines change."""
    tree, seen = ast.parse(path.read_text("utf-8")), Counter[str]()
    for parent, field, place, name in list(sites(tree)):
        held = getattr(parent, field)
        node = held if place is None else held[place]
        for other in list(changes(node)):
            key = f"{path.stem}{name}: {ast.unparse(node)} -> {ast.unparse(other)}"
            seen[key] += 1
            put(parent, field, place, ast.copy_location(other, node))
            yield f"{key} #{seen[key]}", copy.deepcopy(ast.fix_missing_locations(tree))
            put(parent, field, place, node)


def put(parent: ast.AST, field: str, place: object, node: ast.AST) -> None:
    if place is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[place] = node


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the mutant in the place of its module."""

    def __init__(self, module: str, tree: ast.Module, path: Path) -> None:
        self.module, self.tree, self.path = module, tree, path

    def find_spec(self, name, path, target=None):
        if name == self.module:
            return importlib.util.spec_from_file_location(name, self.path, loader=self)
        return None

    def exec_module(self, module) -> None:
        exec(compile(self.tree, self.path, "exec"), vars(module))


def tests_of(path: Path, places: list[str]) -> list[str]:
    """The tests that name the module or something that it defines."""
    names = [node.name for node in ast.parse(path.read_text("utf-8")).body if hasattr(node, "name")]
    used = re.compile(rf"\b({'|'.join([path.stem, *names])})\b")
    files = sorted(file for place in places for file in (ROOT / "tests").glob(place))
    return [str(file) for file in files if used.search(file.read_text("utf-8"))]


def passes(tests: list[str], mutated: Mutated | None = None) -> bool:
    """Whether the tests pass, in a forked process that has at most `SECONDS` of a processor."""
    if process := os.fork():
        return os.waitpid(process, 0)[1] == 0
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1), os.dup2(nowhere, 2)
    sys.meta_path[:0] = [mutated] if mutated else []
    os._exit(pytest.main(["-q", "-x", "-m", "not slow", "--noconftest", *tests]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="+", choices=ROOMS)
    parser.add_argument("--sample", type=int, help="the number of mutants of each room; all")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the most of a room")
    parser.add_argument("--save", type=Path, help="a JSON file: mutant -> whether it died")
    parser.add_argument("--against", type=Path, help="a file that an earlier run saved")
    asked = parser.parse_args()
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import hypothesis  # noqa: F401  loaded once for all forked processes, like torch
    import scipy.optimize  # noqa: F401
    import torch

    torch.set_num_threads(1)
    before = json.loads(asked.against.read_text()) if asked.against else {}
    died = dict[str, bool]()
    for room in asked.rooms:
        pattern, places = ROOMS[room]
        files = sorted((ROOT / "src/manymatch").glob(pattern))
        tests = {path: tests_of(path, places) for path in files}
        if not passes(sorted({file for some in tests.values() for file in some})):
            raise SystemExit(f"{room}: tests fail without a mutation")
        every = [(path, f"{room}/{key}", tree) for path in files for key, tree in mutants(path)]
        random.Random(0).shuffle(every)
        if before:
            every = [mutant for mutant in every if mutant[1] in before]
        dead, began = list[bool](), time.monotonic()
        for path, key, tree in every[: asked.sample]:
            if time.monotonic() - began > asked.seconds:
                break
            module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
            died[key] = not passes(tests[path], Mutated(module, tree, path))
            dead.append(died[key])
            if not dead[-1]:
                print(f"lives: {key}", flush=True)
        print(f"{room}: {sum(dead)} of {len(dead)} mutants died ({len(every)} in all)", flush=True)
        if asked.save:
            asked.save.write_text(json.dumps(died, indent=1))
    revived = [key for key, dead in died.items() if not dead and before.get(key)]
    print(*(f"died before: {key}" for key in revived), sep="\n")
    return bool(revived)


if __name__ == "__main__":
    raise SystemExit(main())
