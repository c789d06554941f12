"""What a time was measured on, in words."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

_PROCESSORS = Path("/proc/cpuinfo")


def hardware(device: torch.device) -> str:
    """ "NVIDIA A100", or "Intel Xeon ..., 2 threads": those that torch computes with."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{processor()}, {threads} thread{'s' if threads > 1 else ''}"


def processor() -> str:
    """The processor's model where the system tells, else its architecture."""
    text = _PROCESSORS.read_text() if _PROCESSORS.is_file() else ""
    found = (line.partition(":")[2] for line in text.splitlines() if line.startswith("model name"))
    return next(found, "").strip() or platform.processor() or platform.machine()
