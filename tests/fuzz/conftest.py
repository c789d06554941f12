"""The number of cases: 200 in all, always the same; FUZZ_CASES=10000 draws as many, at random."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

_CASES = int(os.environ.get("FUZZ_CASES", "0"))
_SECONDS = 30
_BYTES = 2 * 2**30
_SHARED = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.explicit, Phase.generate, Phase.shrink],
}


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Share the cases out among the tests of this folder."""
    own = [item for item in items if Path(__file__).parent in item.path.parents]
    profile = settings(
        **_SHARED, max_examples=-(-(_CASES or 200) // max(1, len(own))), derandomize=not _CASES
    )
    settings.register_profile("fuzz", profile)
    settings.load_profile("fuzz")


@pytest.fixture(autouse=True)
def limits() -> Iterator[Any]:
    """The limits of each case: 30 s. All cases of a test: 2 GiB more memory, 1 GiB of it used."""

    def interrupt(*_: object) -> None:
        pytest.fail(f"still reading after {_SECONDS} s")  # no reader catches this

    @contextlib.contextmanager
    def case() -> Iterator[None]:
        signal.alarm(_SECONDS)
        faulthandler.dump_traceback_later(2 * _SECONDS, exit=True)  # for loops inside libraries
        try:
            yield
        finally:
            signal.alarm(0)
            faulthandler.cancel_dump_traceback_later()

    earlier = resource.getrlimit(resource.RLIMIT_AS)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + _BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, earlier[1]))
    handler = signal.signal(signal.SIGALRM, interrupt)
    yield case
    signal.signal(signal.SIGALRM, handler)
    resource.setrlimit(resource.RLIMIT_AS, earlier)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 2**20  # KiB
