"""Time a training step by itself: forward, loss, backward, clipping, optimiser."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from manymatch.config.preset import Training
from manymatch.experiments.costs.timing import median_seconds
from manymatch.methods.base import Method
from manymatch.shards.batch import Batch
from manymatch.training.optimizer import make_optimizer
from manymatch.training.run_context import deterministic


def step_seconds(
    method: Method, training: Training, batches: Sequence[Batch], device: torch.device
) -> float:
    """The median over `batches`, which are on `device` already; the first two are left out.

    `method` is not changed. The choice of algorithms is that of training.
    """
    step = training_step(copy.deepcopy(method), training, device)
    with deterministic(device.type == "cpu"):
        return median_seconds(step, batches, device, warm_up=2)


def training_step(
    method: Method, training: Training, device: torch.device
) -> Callable[[Batch], Tensor]:
    """`step(batch)` trains `method` as in a late epoch: all parameters, all losses at full weight.
    It returns the loss.

    The precision is the preset's, except for 16-bit floats, whose gradients would need scaling.
    """
    method.train()
    method.start_epoch(training.epochs)
    method.start_step(training.epochs)
    optimizer = make_optimizer(method, training, fused=True)
    mixed = device.type == "cuda" and training.precision in ("auto", "bf16-mixed")

    def step(batch: Batch) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
            images, texts = method.encode_images(batch), method.encode_texts(batch)
        terms = method.loss(images.float(), texts.float(), batch)
        optimizer.zero_grad()
        loss = torch.stack(list(terms.values())).sum()
        loss.backward()
        if training.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(method.parameters(), training.clip_norm)
        optimizer.step()
        return loss.detach()

    return step
