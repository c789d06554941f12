"""One service for all tests of runs; it starts once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from service import Service, free_ports
from workspace import Workspace

from pipelines.graph import Graph, read_graph


@pytest.fixture(scope="session")
def graph(root: Path) -> Graph:
    return read_graph(root)


@pytest.fixture(scope="session")
def service(root: Path, new_workspace: Callable[[], Workspace]) -> Iterator[Service]:
    """A tiny checkout that is served; nothing of it is run yet."""
    folder = new_workspace().folder
    shutil.copytree(
        root / "pipelines", folder / "pipelines", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("prefect.yaml", "prefect.toml"):
        shutil.copy(root / name, folder)
    served = Service(folder, port=free_ports())
    served.commit("Service")
    try:
        served.serve()
        yield served
    finally:
        served.stop()
