"""Fixtures of the tests of evaluation."""

import pytest
from external_files import external_files


@pytest.fixture
def files(tmp_path):
    """Files of another program."""
    return external_files(tmp_path)
