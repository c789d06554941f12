"""The devices of a training and its precision."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed

from manymatch.config.preset import Precision, Training
from manymatch.evaluation.embed import precision_on
from manymatch.system.errors import ConfigError
from manymatch.training.lightning import pl


@dataclass(frozen=True)
class Machine:
    """`devices` GPUs or CPU processes on each of `nodes` hosts, and the precision as Lightning
    names it."""

    accelerator: str
    devices: int
    precision: Precision
    nodes: int = 1

    @property
    def first_device(self) -> torch.device:
        return torch.device("cuda" if self.accelerator == "gpu" else "cpu")

    def trainer_settings(self, all_used: bool = True) -> dict[str, Any]:
        """The `Trainer`'s arguments about devices.

        Args:
            all_used: whether each parameter has a gradient after each batch.
        """
        together = self.devices * self.nodes > 1
        return {
            "accelerator": self.accelerator,
            "devices": self.devices,
            "num_nodes": self.nodes,
            "precision": self.precision,
            # Buffers are equal in all processes: SwAMP's queues, 210 MB, hold the whole batch. On
            # the CPU batch norms differ; `EpochEnd` makes those equal.
            "strategy": pl.strategies.DDPStrategy(
                find_unused_parameters=not all_used, broadcast_buffers=False
            )
            if together
            else "auto",
            # On GPUs, batch norms use the statistics of the whole batch. torch has no such layer
            # for the CPU, where each process uses the statistics of its own part.
            "sync_batchnorm": together and self.accelerator == "gpu",
        }


def description(training: Training, machine: Machine) -> str:
    """One line: the devices, and the precision with the reason for it."""
    reason = {
        "32-true": "bfloat16 speeds up only some methods on a CPU",
        "bf16-mixed": "this GPU has bfloat16",
        "16-mixed": "this GPU has no bfloat16",
    }[machine.precision]
    if training.precision == machine.precision:
        reason = "the preset says so"
    elif training.precision != "auto":
        reason = f"a CPU has no {training.precision}"
    devices = f"{machine.devices * machine.nodes} x {machine.accelerator}"
    return f"training on {devices}, precision {machine.precision} ({reason})"


def first_process() -> bool:
    """Whether this process prints and writes; known before training begins."""
    return getattr(pl.utilities.rank_zero_only, "rank", 0) == 0


def choose_machine(training: Training) -> Machine:
    """The machine that the preset asks for.

    "auto" is every GPU, or one CPU process without GPUs. Under `torchrun` the number of devices is
    the number of processes that `torchrun` started.

    Raises:
        ConfigError: the preset asks for more GPUs than exist, or for devices and parts that do not
            divide the batch.
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
            "on this host. Set training.devices: auto."
        )
    if gpus and devices > gpus:
        raise ConfigError(
            f"training.devices: {devices} GPUs asked for, but this host has {gpus}. "
            "Set training.devices: auto."
        )
    parts = devices * nodes * training.accumulate
    if training.images_per_batch % parts:
        raise ConfigError(
            f"training.images_per_batch: {training.images_per_batch} images cannot be divided "
            f"equally among {devices * nodes} devices, each with training.accumulate: "
            f"{training.accumulate}. Set a multiple of {parts}."
        )
    precision = precision_on("cuda" if gpus else "cpu", training.precision)
    return Machine("gpu" if gpus else "cpu", devices, precision, nodes)


def _started() -> tuple[int, int]:
    """Processes of `torchrun` on this host, and number of hosts; (0, 1) without `torchrun`."""
    if not distributed.is_torchelastic_launched():
        return 0, 1
    here, everywhere = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
    return here, everywhere // here
