"""One service for all tests of runs; it starts once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from service import Service, make_service

from pipelines.graph import Graph, read_graph


@pytest.fixture(scope="session")
def graph(root: Path) -> Graph:
    return read_graph(root)


@pytest.fixture(scope="session")
def service(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A tiny checkout that is served; nothing of it is run yet."""
    served = make_service(root, tmp_path_factory.mktemp("service"))
    try:
        served.serve()
        yield served
    finally:
        if served.processes("prefect"):
            served.stop()
