"""Where a result comes from: what was run on what, by which code, on which machine."""

from __future__ import annotations

import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from manymatch import __version__
from manymatch.config.galleries import is_whole
from manymatch.config.preset import Preset, Setting
from manymatch.methods.checkpoint import facts
from manymatch.shards.index import NAME as INDEX
from manymatch.shards.index import Index, read_index
from manymatch.system import files


def origin(model: Path, shards: Path, preset: Preset) -> dict[str, Any]:
    """Which model and data: settings, hashes and code version.

    `data_sha256` is that of the shards' index, which holds the hash of every shard,
    `warm_start_sha256` that of the model that training started from, None if from nothing.
    """
    return {
        "method": preset.method,
        "preset": model.name,
        "seed": preset.seed,
        "features": preset.features,
        "setting": setting_of(preset, read_index(shards)),
        "resolved": preset.model_dump(),
        "checkpoint_sha256": files.sha256(model / "model.safetensors"),
        "warm_start_sha256": facts(model).get("warm_start_sha256"),
        "data_sha256": files.sha256(shards / INDEX),
        "version": __version__,
        "git_revision": git_revision(model),
    }


def setting_of(preset: Preset, index: Index) -> Setting:
    """`reproduced` only if the preset says so and the data are the paper's, all of them."""
    images = {name: split.images for name, split in index.splits.items()}
    return preset.setting if is_whole(index.dataset, images) else "small-scale"


def git_revision(folder: Path) -> str | None:
    """The commit of the checkout that holds `folder`; None where there is none."""
    command = ["git", "-C", str(folder), "rev-parse", "--verify", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def effort(device: torch.device, started: float) -> dict[str, Any]:
    """On what it ran, the seconds since `started` (`time.monotonic`) and the peak of memory.

    `peak_memory_mb` is the most that this process has held so far, in MiB; with a GPU there is
    `peak_gpu_memory_mb` too.
    """
    record: dict[str, Any] = {
        "device": f"cpu ({platform.processor() or platform.machine()})",
        "seconds": round(time.monotonic() - started, 1),
        "peak_memory_mb": peak_memory_mb(),
    }
    if device.type == "cuda":
        record["device"] = torch.cuda.get_device_name(device)
        record["peak_gpu_memory_mb"] = round(torch.cuda.max_memory_allocated(device) / 2**20, 1)
    return record


def peak_memory_mb() -> float:
    """The most memory this process has held so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)
