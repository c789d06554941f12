"""Fixtures of the tests of evaluation."""

from pathlib import Path

import pytest
from external_files import Files, external_files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Files of another program."""
    return external_files(tmp_path)
