"""Fixtures that several rooms share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder with the real data sets; tests on it are skipped where it is not."""
    folder = Path(os.environ.get("MANYMATCH_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real data here: set MANYMATCH_DATA to the folder that holds it")
    return folder
