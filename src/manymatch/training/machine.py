"""On what training runs: which devices, how many, at which precision."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
from pytorch_lightning.strategies import DDPStrategy
from pytorch_lightning.utilities import rank_zero_only
from torch import distributed

from manymatch.config.preset import Training
from manymatch.system.errors import ConfigError


@dataclass(frozen=True)
class Machine:
    """`devices` GPUs or CPU processes on each of `nodes` hosts, and Lightning's name of the
    precision."""

    accelerator: str
    devices: int
    precision: Any
    nodes: int = 1

    def trainer_settings(self) -> dict[str, Any]:
        """The `Trainer`'s arguments about devices."""
        together = self.devices * self.nodes > 1
        return {
            "accelerator": self.accelerator,
            "devices": self.devices,
            "num_nodes": self.nodes,
            "precision": self.precision,
            # A batch without relations, say, leaves some parameters without gradient.
            "strategy": DDPStrategy(find_unused_parameters=True) if together else "auto",
            # Batch statistics are those of the whole batch. torch has no such layer for the CPU,
            # where each process normalises by its own part.
            "sync_batchnorm": together and self.accelerator == "gpu",
        }


def first_process() -> bool:
    """Whether this is the process that speaks and writes; known before training begins."""
    return getattr(rank_zero_only, "rank", 0) == 0


def choose(training: Training) -> Machine:
    """What the preset asks for; "auto" takes every GPU, or one CPU process where there is none.
    Under `torchrun` there are as many devices as it has started processes.

    Raises:
        ConfigError: more GPUs are asked for than there are, or they cannot share a batch.
    """
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    started, nodes = _started()
    if training.devices == "auto":
        devices = started or gpus or 1
    else:
        devices = training.devices
    if started and devices != started:
        raise ConfigError(
            f"training.devices: {devices} asked for, but torchrun started {started} processes "
            "here; leave it at auto"
        )
    if gpus and devices > gpus:
        raise ConfigError(
            f"training.devices: {devices} GPUs asked for, {gpus} are here; leave it at auto"
        )
    if training.images_per_batch % (devices * nodes):
        raise ConfigError(
            f"training.images_per_batch: {training.images_per_batch} images cannot be shared out "
            f"equally among {devices * nodes} devices; set a multiple of {devices * nodes}"
        )
    precision = _auto_precision(gpus) if training.precision == "auto" else training.precision
    return Machine("gpu" if gpus else "cpu", devices, precision, nodes)


def _started() -> tuple[int, int]:
    """The processes that `torchrun` started on this host, and the hosts; (0, 1) without it."""
    if not distributed.is_torchelastic_launched():
        return 0, 1
    here, everywhere = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
    return here, everywhere // here


def _auto_precision(gpus: int) -> str:
    if not gpus:
        return "32-true"
    return "bf16-mixed" if torch.cuda.is_bf16_supported(False) else "16-mixed"
