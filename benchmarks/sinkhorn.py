"""SwAMP's assignment of samples to classes: its part of a training step.

    python benchmarks/sinkhorn.py              # 1,280 queued pairs x 1,000 classes
    python benchmarks/sinkhorn.py --device cuda

The script takes training steps of SwAMP as it is by default (128 images of 36 regions, a caption
each, D=1024, Adam). Printed are medians: of a step, of the part of the step that assigns
both modalities, from log p to labels, and of what plain log-domain loops would take.
"""

from __future__ import annotations

import math
from functools import partial
from statistics import median
from typing import Any

import torch
from measuring import arguments
from torch import Tensor
from training_step import built, made_up, made_up_words

from manymatch.config.preset import Preset
from manymatch.experiments.costs.timing import seconds, training_step
from manymatch.methods.swamp import SwAMP

IMAGES = 128
NAIVE_ROUNDS = 20


def main() -> None:
    options = arguments(__doc__, device="cpu", threads=2, steps=(9, "times each is measured"))
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    device, words = torch.device(options.device), made_up_words()
    preset = Preset(method="swamp", features="butd")
    method = built(preset, words).to(device)
    assert isinstance(method, SwAMP) and method.labels is not None
    step = training_step(method, preset.training, device)
    batch = made_up(IMAGES, 1, words).to(device)
    labels, assign = method.labels, method.labels.assign
    memories = labels.images, labels.texts
    spent: list[float] = []

    def clocked(*arguments: Any) -> Tensor:
        results: list[Tensor] = []
        spent.append(seconds(lambda: results.append(assign(*arguments)), device))
        return results[0]

    labels.assign = clocked  # type: ignore[method-assign, assignment]
    wholes, parts = [], []
    for _ in range(len(labels.images.queue.rows) // IMAGES + options.steps):  # the first fill it
        spent.clear()
        wholes.append(seconds(lambda: step(batch), device))
        parts.append(sum(spent))
    whole, part = (median(times[-options.steps :]) for times in (wholes, parts))
    with torch.no_grad():
        queues = [labels.classes(memory.queue.rows) for memory in memories]
    eta = labels.settings.eta
    plain = sum(seconds(partial(naive, log_p, eta, NAIVE_ROUNDS), device) for log_p in queues)
    print(f"{'a training step':32}{1000 * whole:9.1f} ms")
    print(f"{'of it the assignments':32}{1000 * part:9.1f} ms   {100 * part / whole:.1f}%")
    print(f"{f'plain loops of {NAIVE_ROUNDS} rounds':32}{1000 * plain:9.1f} ms")


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
