"""The files of the methods, which are read as data: an import would load torch."""

from __future__ import annotations

import ast
from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def method_names() -> tuple[str, ...]:
    """The names of all methods, those of their files, in alphabetical order."""
    return tuple(sorted(path.stem for path in _folder().glob("[!_]*.py")))


@cache
def method_titles() -> dict[str, str]:
    """Method -> the `title` of its class, which is what the papers call the method."""
    return {name: _title(_folder() / f"{name}.py") for name in method_names()}


def _folder() -> Path:
    spec = find_spec("manymatch")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "methods"


def _title(path: Path) -> str:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "title":
            title: str = ast.literal_eval(node.value)
            return title
    raise LookupError(f"{path}: no title")
