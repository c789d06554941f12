"""The number of cases of each test, and the bounds of a case.

The profile `quick` draws the same cases each time, about 200 in a file. MANYMATCH_FUZZ=by_hand
draws about 10,000 at random.
"""

import contextlib
import faulthandler
import os
import resource
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

_CASES = {"quick": 12, "by_hand": 600}
_SECONDS = 30
_BYTES = 2 * 2**30

for _name, _cases in _CASES.items():
    settings.register_profile(
        _name,
        max_examples=_cases,
        derandomize=_name == "quick",
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
    )
settings.load_profile(os.environ.get("MANYMATCH_FUZZ", "quick"))


@pytest.fixture(autouse=True)
def limits():
    """The limits of each case: 30 s. All cases of a test: 2 GiB more memory, 1 GiB of it used."""

    def interrupt(*_):
        pytest.fail(f"still reading after {_SECONDS} s")  # no reader catches this

    @contextlib.contextmanager
    def case():
        signal.alarm(_SECONDS)
        # For loops inside libraries.
        faulthandler.dump_traceback_later(2 * _SECONDS, exit=True, file=sys.__stderr__)
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
