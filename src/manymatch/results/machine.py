"""What the stages of a result used on this machine: time, memory, device, host, date, revision.

These facts differ from run to run, so they are kept in `reports/machine/`, outside git and outside
every stage's dependencies and outputs.
"""

import contextlib
import platform
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil
from pydantic import BaseModel, RootModel, ValidationError

from manymatch.util import files
from manymatch.util.errors import DataError
from manymatch.util.locks import lock_path, locked
from manymatch.util.regular_file import open_regular


class Usage(BaseModel):
    """One stage's run. `seconds` is None if an interrupted run had done a part of the work."""

    date: str
    """End of the run, UTC, ISO 8601."""
    host: str
    device: str
    seconds: float | None
    peak_memory_mb: float
    """The most memory that the process held, in MiB."""
    peak_gpu_memory_mb: float | None = None
    git_revision: str | None = None
    """The commit of the checkout; None outside a git checkout."""


class MachineRecord(RootModel[dict[str, Usage]]):
    """The content of `reports/machine/DATASET/PRESET.json`: the last run of each stage, by the
    stage's name (`train`, `evaluate`, `ensemble`, `rerank`, `score`)."""

    @classmethod
    def read(cls, path: Path) -> "MachineRecord":
        """The record in `path`; an empty one if there is no file, or no usable one."""
        try:
            with open_regular(path) as file:
                return cls.model_validate_json(file.read())
        except (OSError, DataError, ValidationError):
            return cls({})


class Clock:
    """Measures one stage's run from the moment when the clock is made."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def usage(self, device: str = "cpu", resumed: bool = False) -> Usage:
        """The usage from the start until now. `device` is torch's name of the device that computed.
        `resumed`: an interrupted run had done a part of the work."""
        name, gpu_memory_mb = f"cpu ({platform.processor() or platform.machine()})", None
        if device.startswith("cuda"):
            import torch

            name = torch.cuda.get_device_name(device)
            gpu_memory_mb = round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
        return Usage(
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            host=platform.node(),
            device=name,
            seconds=None if resumed else round(time.monotonic() - self._started, 1),
            peak_memory_mb=peak_memory_mb(),
            peak_gpu_memory_mb=gpu_memory_mb,
            git_revision=git_revision(Path()),
        )


def record(path: Path, stage: str, usage: Usage) -> None:
    """Add the usage of `stage` to the record in `path`; the entries of other stages stay."""
    with locked(lock_path(path), path):
        known = MachineRecord.read(path).root
        files.write_json(path, MachineRecord({**known, stage: usage}).model_dump())


def read_records(folder: Path) -> dict[str, MachineRecord]:
    """All records under `folder` (`reports/machine`), by DATASET/PRESET."""
    return {
        path.relative_to(folder).with_suffix("").as_posix(): MachineRecord.read(path)
        for path in sorted(folder.glob("*/*.json"))
    }


def git_revision(folder: Path) -> str | None:
    """The commit of the checkout that holds `folder`; None outside a checkout."""
    command = ["git", "-C", str(folder), "rev-parse", "--verify", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def free_memory() -> int:
    """The bytes of memory that this process may still take, in a container those of its limit."""
    free = psutil.virtual_memory().available
    with contextlib.suppress(OSError, ValueError):  # no container, or "max"
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        free = min(free, max(0, limit - used))
    return free


def peak_memory_mb() -> float:
    """The most memory that this process has held so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)
