"""The pictures of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_forms import Birds


@pytest.fixture
def birds(tmp_path: Path) -> Birds:
    return Birds(tmp_path)
