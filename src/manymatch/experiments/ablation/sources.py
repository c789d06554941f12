"""Which code a run's numbers come from, as one hash."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from manymatch.methods import METHODS

_PACKAGE = Path(__file__).parents[2]
_ENTRIES = ("training/train.py", "evaluation/evaluate.py")
_REGISTRY = _PACKAGE / "methods" / "__init__.py"
"""Left out: a new line in it changes no method that was there."""


@functools.cache
def sources_hash(method: str) -> str:
    """SHA-256 of everything in this package that training and evaluating `method` imports."""
    return code_hash([*(_PACKAGE / entry for entry in _ENTRIES), _file_of(method)])


def code_hash(entries: list[Path]) -> str:
    """SHA-256 of the code in `entries` and in all of this package that they import.

    Comments, docstrings and layout do not count, so that only a change of what is computed can
    change the hash.
    """
    digest = hashlib.sha256()
    for path in sorted(_closure(entries)):
        digest.update(f"{path.name}\n{_code(path)}\n".encode())
    return digest.hexdigest()


def _file_of(method: str) -> Path:
    """A method may come from outside the package."""
    spec = importlib.util.find_spec(METHODS[method].partition(":")[0])
    assert spec is not None and spec.origin is not None  # the method was built from it
    return Path(spec.origin)


def _closure(todo: list[Path]) -> set[Path]:
    found: set[Path] = set()
    while todo:
        path = todo.pop()
        if path not in found and path != _REGISTRY:
            found.add(path)
            todo += _imported(path)
    return found


def _imported(path: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("manymatch"):
            yield from _files(node.module or "")
            for alias in node.names:
                yield from _files(f"{node.module}.{alias.name}")


def _files(module: str) -> list[Path]:
    """The file of a module or package; none if `module` is a name inside one."""
    place = _PACKAGE.joinpath(*module.split(".")[1:])
    candidates = (place.with_suffix(".py"), place / "__init__.py")
    return [path for path in candidates if path.is_file()]


def _code(path: Path) -> str:
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(statement: ast.stmt) -> bool:
    """A docstring, of a module, class, function or attribute."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
