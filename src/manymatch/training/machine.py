"""The devices of a training and its precision."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed

from manymatch.config.preset import Precision, Training
from manymatch.model.embed import precision_on
from manymatch.networks.device import multiplies_bfloat16
from manymatch.training.helpers import Started
from manymatch.training.lightning import pl
from manymatch.util.errors import ConfigError


@dataclass(frozen=True)
class Machine:
    """`devices` GPUs or CPU processes on each of `nodes` hosts, and the precision as Lightning
    names it."""

    accelerator: str
    devices: int
    precision: Precision
    nodes: int = 1

    @property
    def together(self) -> bool:
        """Whether several processes train."""
        return self.devices * self.nodes > 1

    @property
    def first_device(self) -> torch.device:
        return torch.device("cuda" if self.accelerator == "gpu" else "cpu")

    def trainer_settings(self, all_used: bool = True) -> dict[str, Any]:
        """The `Trainer`'s arguments about devices.

        Args:
            all_used: whether each parameter has a gradient after each batch.
        """
        return {
            "accelerator": self.accelerator,
            "devices": self.devices,
            "num_nodes": self.nodes,
            "precision": self.precision,
            "plugins": None if distributed.is_torchelastic_launched() else [Started()],
            # Buffers are equal in all processes: SwAMP's queues, 210 MB, hold the whole batch. On
            # the CPU batch norms differ; `EpochEnd` makes those equal.
            "strategy": pl.strategies.DDPStrategy(
                find_unused_parameters=not all_used, broadcast_buffers=False
            )
            if self.together
            else "auto",
            # On GPUs, batch norms use the statistics of the whole batch. torch has no such layer
            # for the CPU, where each process uses the statistics of its own part.
            "sync_batchnorm": self.together and self.accelerator == "gpu",
        }


def description(training: Training, machine: Machine) -> str:
    """One line: the devices, and the precision with the reason for it."""
    if training.precision == machine.precision:
        reason = "the preset says so"
    elif training.precision != "auto":
        reason = f"a CPU has no {training.precision}"
    else:
        can = "multiplies" if machine.precision == "bf16-mixed" else "does not multiply"
        reason = f"this {machine.accelerator.upper()} {can} bfloat16"
    devices = f"{machine.devices * machine.nodes} x {machine.accelerator}"
    return f"training on {devices}, precision {machine.precision} ({reason})"


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
    precision = training_precision("cuda" if gpus else "cpu", training.precision)
    return Machine("gpu" if gpus else "cpu", devices, precision, nodes)


def training_precision(device: str, asked: Precision) -> Precision:
    """The precision of a training on a device of the type `device`.

    It is the precision in which the model embeds, except that "auto" trains in bf16-mixed on a CPU
    that multiplies bfloat16.
    """
    if device == "cpu" and asked == "auto" and multiplies_bfloat16():
        return "bf16-mixed"
    return precision_on(device, asked)


def _started() -> tuple[int, int]:
    """Processes of `torchrun` on this host, and number of hosts; (0, 1) without `torchrun`."""
    if not distributed.is_torchelastic_launched():
        return 0, 1
    here, everywhere = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
    return here, everywhere // here
