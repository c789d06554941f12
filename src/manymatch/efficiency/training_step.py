"""Seconds of a training step: forward, loss, backward, clipping, optimiser."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch

from manymatch.config.recipe import Training
from manymatch.efficiency.timing import median_seconds
from manymatch.methods.base import Method
from manymatch.shards.batch import Batch
from manymatch.training.module import in_float32
from manymatch.training.optimizer import make_optimizer


def step_seconds(
    method: Method, training: Training, batches: Sequence[Batch], device: torch.device
) -> float:
    """The median over `batches` (already on `device`) past the first two; `method` stays as it is.

    In the recipe's precision, but for 16-bit floats, whose gradients would need scaling.
    """
    learner = copy.deepcopy(method).train()
    learner.start_epoch(training.epochs)
    learner.start_step(training.epochs)
    optimizer = make_optimizer(learner, training, fused=training.optimizer.name != "adamp")
    mixed = device.type == "cuda" and training.precision in ("auto", "bf16-mixed")

    def step(batch: Batch) -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=mixed):
            images, texts = learner.encode_images(batch), learner.encode_texts(batch)
        terms = learner.loss(in_float32(images), in_float32(texts), batch)
        optimizer.zero_grad()
        torch.stack(list(terms.values())).sum().backward()
        torch.nn.utils.clip_grad_norm_(learner.parameters(), training.clip_norm)
        optimizer.step()

    return median_seconds(step, batches, device, warm_up=2)
