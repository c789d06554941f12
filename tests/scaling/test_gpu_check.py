"""`make gpu-check` runs on a machine without a GPU too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_each_method_has_a_line(root: Path) -> None:
    arguments = ["vsepp", "--images", "2", "--stored", "16", "--processes", "2"]
    done = subprocess.run(
        [sys.executable, root / "benchmarks" / "gpu_check.py", *arguments],
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    # The device is the CPU itself.
    assert re.search(r"^\| vsepp \| 0e\+00, 0e\+00 \| \d+ \|", done.stdout, re.M)
    for source in ("shards", "memory"):
        assert re.search(rf"^\| {source} \| \d+ \|", done.stdout, re.M)
    (difference,) = re.findall(r"differs from one's by (\S+)", done.stdout)
    assert float(difference) < 1e-5
