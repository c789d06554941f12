"""The devices of a training, its precision, and how several devices share the work."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins import FSDPPrecision, MixedPrecision, Precision
from lightning_fabric.strategies import DDPStrategy, FSDPStrategy
from torch import Tensor, distributed, nn
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel

from manymatch.config.preset import Precision as PrecisionName
from manymatch.config.preset import Training
from manymatch.methods.shared.method import Method
from manymatch.model.embed import precision_on
from manymatch.networks.device import multiplies_bfloat16
from manymatch.training.helpers import Started
from manymatch.util.errors import ConfigError


class _Rounding(Precision):
    """Mixed precision in which each use of a weight is rounded anew, so that the gradients of all
    uses are added in float32. A batch stays as it is until a layer rounds its features."""

    device = "cuda"

    def forward_context(self) -> AbstractContextManager[Any]:
        if self.precision == "32-true":
            return nullcontext()
        half = torch.bfloat16 if self.precision == "bf16-mixed" else torch.float16
        return torch.autocast(self.device, half, cache_enabled=False)

    def convert_input(self, data: Any) -> Any:
        return data

    def convert_output(self, data: Any) -> Any:
        return data


class Mixed(_Rounding, MixedPrecision):
    """`16-mixed` and `bf16-mixed` where each device has the whole model."""


class Sharded(_Rounding, FSDPPrecision):
    """Each precision where each GPU has a part of the model. Weights are exchanged in float32."""

    mixed_precision_config = None  # type: ignore[assignment]


class Halved(DDPStrategy):
    """Gradients are rounded to bfloat16 before the devices exchange them."""

    def setup_module(self, module: nn.Module) -> DistributedDataParallel:
        parallel = super().setup_module(module)
        parallel.register_comm_hook(None, lambda state, bucket: _halved_mean(bucket))
        return parallel


def _halved_mean(bucket: distributed.GradBucket) -> torch.futures.Future[Tensor]:
    """The mean of all devices' gradients. torch's own hook is for GPUs alone."""
    gradients = bucket.buffer()
    half = gradients.bfloat16().div_(distributed.get_world_size())
    summed = distributed.all_reduce(half, async_op=True).get_future()
    return summed.then(lambda done: gradients.copy_(done.value()[0]))


@dataclass(frozen=True)
class Machine:
    """`devices` GPUs or CPU processes on each of `nodes` hosts, and the precision as Fabric names
    it. `sharded`: each GPU keeps a part of the weights and of the optimiser's state."""

    accelerator: str
    devices: int
    precision: PrecisionName
    nodes: int = 1
    sharded: bool = False

    @property
    def together(self) -> bool:
        """Whether several processes train."""
        return self.devices * self.nodes > 1

    @property
    def tf32(self) -> bool:
        """Whether the products that stay in float32 are in TF32."""
        return self.accelerator == "gpu" and self.precision != "32-true"

    @property
    def first_device(self) -> torch.device:
        return torch.device("cuda" if self.accelerator == "gpu" else "cpu")

    def fabric(self, training: Training, method: Method) -> Fabric:
        """Lightning Fabric for a training of `method` on this machine. A parameter that cannot be
        divided among GPUs is a `ConfigError`."""
        strategy: Any = "auto"
        if self.sharded:
            for name, parameter in method.named_parameters():
                if not parameter.ndim:
                    raise ConfigError(
                        f"training.strategy: fsdp cannot divide '{name}', which is one number. "
                        "Set training.strategy: ddp."
                    )
            strategy = FSDPStrategy(state_dict_type="full")
        elif self.together:
            # Parameters that are still frozen have no gradient; nor have those of relations after a
            # batch whose scene graphs have no relation. DDP leaves out what is always frozen.
            unused = any(group.from_epoch for group in training.parameter_groups)
            kind = Halved if training.exchange == "bfloat16" else DDPStrategy
            strategy = kind(
                find_unused_parameters=unused or method.reads_graphs,
                # Buffers are equal in all processes: SwAMP's queues, 210 MB, hold the whole batch.
                # A CNN's batch norms may differ; `fit` makes those equal after each epoch.
                broadcast_buffers=False,
                gradient_as_bucket_view=True,
            )
        plugins: list[Any] = [] if distributed.is_torchelastic_launched() else [Started()]
        precision: Any = self.precision
        if self.sharded:
            plugins.append(Sharded(precision))
        elif precision != "32-true":
            plugins.append(Mixed(precision, self.first_device.type))
        return Fabric(
            accelerator=self.accelerator,
            devices=self.devices,
            num_nodes=self.nodes,
            strategy=strategy,
            plugins=plugins,
        )


@contextmanager
def whole_weights(module: nn.Module) -> Iterator[None]:
    """In the block each process has all weights of a module that Fabric has set up, even if each
    GPU keeps a part of them."""
    sharded = [part for part in module.modules() if isinstance(part, FullyShardedDataParallel)]
    if not sharded:
        yield
        return
    with FullyShardedDataParallel.summon_full_params(sharded[0], writeback=False):
        yield


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
    rest = ", TF32 for what stays in float32" if machine.tf32 else ""
    return f"training on {devices}, precision {machine.precision} ({reason}){rest}"


def choose_machine(training: Training) -> Machine:
    """The machine that the preset asks for.

    "auto" is every GPU, or one CPU process without GPUs. Under `torchrun` the number of devices is
    the number of processes that `torchrun` started.

    Raises:
        ConfigError: the preset asks for more GPUs than exist, for devices and parts that do not
            divide the batch, or for `fsdp` with settings that do not work with it.
    """
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    started, nodes = 0, 1
    if distributed.is_torchelastic_launched():
        started = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // started
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
    sharded = training.strategy == "fsdp"
    machine = Machine("gpu" if gpus else "cpu", devices, precision, nodes, sharded)
    if sharded:
        _refuse_unsharded(training, machine)
    return machine


def _refuse_unsharded(training: Training, machine: Machine) -> None:
    """Refuse what `fsdp` cannot do: AdamP needs whole matrices, an average needs whole weights, and
    a flat parameter cannot be frozen in part or be used in a second encoding."""
    if machine.accelerator == "cpu" or not machine.together:
        raise ConfigError(
            "training.strategy: fsdp divides a model among several GPUs, but this training is on "
            f"{machine.devices} x {machine.accelerator}. Set training.strategy: auto."
        )
    groups = training.parameter_groups
    unfit = {
        "optimizer.name: adamp": training.optimizer.name == "adamp",
        "weight_average": training.weight_average > 0,
        "accumulate": training.accumulate > 1,
        "parameter_groups with frozen parameters": any(
            group.from_epoch or not group.lr_scale for group in groups
        ),
        "precision: 16-mixed": machine.precision == "16-mixed",
        "compile: true": training.compile is True,
        "exchange: bfloat16": training.exchange == "bfloat16",
    }
    if wrong := [name for name, found in unfit.items() if found]:
        raise ConfigError(
            f"training.strategy: fsdp does not work with training.{wrong[0]}. Set "
            "training.strategy: ddp, or change the other setting."
        )


def training_precision(device: str, asked: PrecisionName) -> PrecisionName:
    """The precision of a training on a device of the type `device`: that in which the model embeds,
    except that "auto" trains in bf16-mixed on a CPU that multiplies bfloat16."""
    if device == "cpu" and asked == "auto" and multiplies_bfloat16():
        return "bf16-mixed"
    return precision_on(device, asked)
