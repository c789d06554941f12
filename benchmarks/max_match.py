"""MaxMatch's similarity and its retrieval rule against smooth-Chamfer, as ratios of time.

Random unit vectors; scoring without gradient, and a training step's forward and backward pass.
Run

    python benchmarks/max_match.py             # 200 images x 1,000 captions, K=4, D=1024
    python benchmarks/max_match.py --sets 8

In every round each is timed right after smooth-Chamfer, in one process, on one thread and on two;
the ratio is the median over the rounds. On a busy machine read the processor's (all threads).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial

import torch
from measuring import arguments, clocks
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.similarities import max_match, smooth_chamfer, top_match

Similarity = Callable[[Tensor, Tensor], Tensor]
Clocks = tuple[float, float]
"""Seconds by the wall clock, and of the processor."""


def main() -> None:
    options = arguments(
        __doc__,
        images=200,
        captions=1000,
        sets=(4, "vectors per image and caption (K)"),
        width=(1024, "of a vector (D)"),
        rounds=(15, "times each is measured"),
        threads=[1, 2],
    )
    generator = torch.Generator().manual_seed(0)
    images, texts = (
        normalize(torch.randn(count, options.sets, options.width, generator=generator), dim=-1)
        for count in (options.images, options.captions)
    )
    print(f"{'':46}{'smooth-Chamfer':>16}{'ratio':>8}{'of processor':>14}")
    for threads in options.threads:
        torch.set_num_threads(threads)
        for mode, run in (("scoring", _score), ("training", _train)):
            for similarity in (max_match, top_match):
                pairs = [
                    (
                        clocks(partial(run, smooth_chamfer, images, texts)),
                        clocks(partial(run, similarity, images, texts)),
                    )
                    for _ in range(options.rounds)
                ]
                _report(f"{threads} threads, {mode}, {similarity.__name__}", pairs)


def _score(similarity: Similarity, images: Tensor, texts: Tensor) -> None:
    with torch.inference_mode():
        similarity(images, texts)


def _train(similarity: Similarity, images: Tensor, texts: Tensor) -> None:
    learning = images.detach().requires_grad_(), texts.detach().requires_grad_()
    torch.autograd.grad(similarity(*learning).sum(), learning)


def _report(name: str, pairs: list[tuple[Clocks, Clocks]]) -> None:
    fastest = min(base[0] for base, _ in pairs)
    wall, processor = (
        statistics.median(other[clock] / base[clock] for base, other in pairs) for clock in (0, 1)
    )
    print(f"{name:46}{1000 * fastest:13.1f} ms{wall:8.2f}{processor:14.2f}")


if __name__ == "__main__":
    main()
