"""SwAMP's assignment of samples to classes: its part of a training step.

    python benchmarks/sinkhorn.py              # 1,280 queued pairs x 1,000 classes
    python benchmarks/sinkhorn.py --device cuda

The script takes training steps of SwAMP as it is by default (128 images of 36 regions, a caption
each, D=1024, Adam). Printed are medians: of a step, of the part of the step that assigns
both modalities, from log p to labels, and of what plain log-domain loops would take.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch
from measuring import arguments
from torch import Tensor
from training_step import built, made_up, made_up_words

from manymatch.config.preset import Preset
from manymatch.experiments.costs.timing import seconds, training_step
from manymatch.losses.pseudo_labels import SwappedLabels
from manymatch.methods.swamp import SwAMP

IMAGES = 128
NAIVE_ROUNDS = 20


def main() -> None:
    options = arguments(__doc__, device="cpu", threads=2, steps=(9, "times each is measured"))
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    _step(torch.device(options.device), options.steps)


def _step(device: torch.device, steps: int) -> None:
    """Whole training steps, and within them the seconds of every assignment."""
    preset = Preset(method="swamp", features="butd")
    words = made_up_words()
    method = built(preset, words).to(device)
    assert isinstance(method, SwAMP) and method.labels is not None
    step = training_step(method, preset.training, device)
    batch = made_up(IMAGES, 1, words).to(device)
    spent: list[float] = []
    method.labels.assign = _clocked(method.labels.assign, spent, device)
    wholes, parts = [], []
    queue = len(method.labels.images.queue.rows)
    for _ in range(queue // IMAGES + steps):  # the first fill the queue
        spent.clear()
        wholes.append(seconds(lambda: step(batch), device))
        parts.append(sum(spent))
    whole, part = (median(solution[-steps:]) for solution in (wholes, parts))
    plain = _naive_seconds(method.labels, device)
    print(f"{'a training step':32}{1000 * whole:9.1f} ms")
    print(f"{'of it the assignments':32}{1000 * part:9.1f} ms   {100 * part / whole:.1f}%")
    print(f"{f'plain loops of {NAIVE_ROUNDS} rounds':32}{1000 * plain:9.1f} ms")


def _clocked(
    assign: Callable[..., Tensor], spent: list[float], device: torch.device
) -> Callable[..., Tensor]:
    def clocked(*arguments: Any) -> Tensor:
        labels: list[Tensor] = []
        spent.append(seconds(lambda: labels.append(assign(*arguments)), device))
        return labels[0]

    return clocked


def _naive_seconds(labels: SwappedLabels, device: torch.device) -> float:
    """Of both modalities' queues, once each."""
    with torch.no_grad():
        queues = [labels.classes(memory.queue.rows) for memory in (labels.images, labels.texts)]
    eta = labels.settings.eta
    return sum(seconds(partial(naive, log_p, eta, NAIVE_ROUNDS), device) for log_p in queues)


@torch.no_grad()
def naive(log_p: Tensor, eta: float, rounds: int) -> Tensor:
    """Scale columns to N / n_classes and rows to 1, as the formula says it."""
    plan, share = eta * log_p, math.log(log_p.shape[0] / log_p.shape[1])
    for _ in range(rounds):
        plan = plan - plan.logsumexp(0, keepdim=True) + share
        plan = plan - plan.logsumexp(1, keepdim=True)
    return plan.exp()


if __name__ == "__main__":
    main()
