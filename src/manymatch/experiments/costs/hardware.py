"""The hardware that a time was measured on, as a text."""

from __future__ import annotations

import platform
from pathlib import Path

import torch

_PROCESSORS = Path("/proc/cpuinfo")


def hardware(device: torch.device) -> str:
    """The device that torch uses: "NVIDIA A100", or "Intel Xeon ..., 2 threads"."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{processor()}, {threads} thread{'s' if threads > 1 else ''}"


def processor() -> str:
    """The model of the processor, or its architecture if the system does not name the model."""
    text = _PROCESSORS.read_text() if _PROCESSORS.is_file() else ""
    models = (line.partition(":")[2] for line in text.splitlines() if line.startswith("model name"))
    return next(models, "").strip() or platform.processor() or platform.machine()
