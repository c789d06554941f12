"""A plugin of pytest that records which tests `make quick` leaves out: `make long-tests`."""

import os
from collections import Counter
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "long_tests.txt"
_LONG = 0.3
"""Processor seconds of all cases of a test, without those of its fixtures."""
_SECONDS = Counter()


def name_of(item):
    """The name of a test, which is that of all its cases."""
    return item.nodeid.partition("[")[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    before = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        _SECONDS[name_of(item)] += sum(os.times()[:4]) - before


def pytest_sessionfinish(exitstatus):
    if exitstatus == 0:
        long = sorted(name for name, seconds in _SECONDS.items() if seconds >= _LONG)
        FILE.write_text("".join(f"{name}\n" for name in long))
