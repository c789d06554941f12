"""dvc.yaml names for each stage the sources that the stage imports: no fewer, so that no edit is
missed, and no file that is not there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ENTRY = {
    "download": "datasets/download.py",
    "captions": "datasets/captions.py",
    "features": "features/extract.py",
    "scene_graphs": "scene_graphs/parse.py",
    "shards": "shards/write.py",
    "train": "training/train.py",
    "evaluate": "evaluation/evaluate.py",
    "ensemble": "evaluation/ensemble.py",
    "experiment": "experiments/presets/experiment.py",
    "report": "reporting/report.py",
}
SHARED = ("config", "datasets/base.py", "scene_graphs/graph.py")
"""Besides single files at the package's root: settings, which stages depend on as parameters, and
the tables' schemas, whose changes show in the tables."""
MODELS = (
    "methods",
    "encoders",
    "layers",
    "pooling",
    "similarities",
    "losses",
    "shards/augment.py",
    "features/",
)
"""What a trained model brings along: evaluation runs again because the model changed."""


def imported(source: Path, package: Path) -> Iterator[Path]:
    """The package's own files that a file imports, at whatever depth in it."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("manymatch"):
            parts = node.module.split(".")[1:] if node.module else []
            folder = package.joinpath(*parts)
            names = [folder / f"{alias.name}.py" for alias in node.names]
            modules = [name for name in names if name.is_file()]
            yield from modules or [folder.with_suffix(".py")]


def closure(entry: Path, package: Path) -> set[Path]:
    found, todo = set(), [entry]
    while todo:
        source = todo.pop()
        if source.is_file() and source not in found:
            found.add(source)
            todo += imported(source, package)
    return {path.relative_to(package) for path in found}


def named(root: Path, stage: str) -> list[str]:
    """The sources among a stage's dependencies, for the dataset `scenes`."""
    found = yaml.safe_load((root / "dvc.yaml").read_text())["stages"][stage]
    deps = found.get("do", found)["deps"]
    prefix = "src/manymatch/"
    sources = [dep.removeprefix(prefix) for dep in deps if dep.startswith(prefix)]
    return [source.replace("${item.dataset}", "scenes") for source in sources]


@pytest.mark.parametrize("stage", ENTRY)
def test_every_imported_source_is_a_dependency(root: Path, stage: str) -> None:
    package = root / "src" / "manymatch"
    ignored = (*SHARED, *(MODELS if stage in ("evaluate", "ensemble") else ()))
    needed = {
        str(path)
        for path in closure(package / ENTRY[stage], package)
        if len(path.parts) > 1 and not str(path).startswith(ignored) and path.name != "__init__.py"
    }
    assert needed, "the closure of imports was not found"
    deps = named(root, stage)
    assert [path for path in sorted(needed) if not path.startswith(tuple(deps))] == []


@pytest.mark.parametrize("stage", ENTRY)
def test_every_named_source_is_there(root: Path, stage: str) -> None:
    sources = named(root, stage)
    assert sources
    assert [path for path in sources if not (root / "src" / "manymatch" / path).exists()] == []
