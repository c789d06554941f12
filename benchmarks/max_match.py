"""MaxMatch's similarity and its retrieval rule against smooth-Chamfer, as ratios of time.

Random unit vectors; scoring without gradient, and a training step's forward and backward pass.
Run

    python benchmarks/max_match.py             # 200 images x 1,000 captions, K=4, D=1024
    python benchmarks/max_match.py --sets 8

All take turns in one process, on one thread and on two. On a busy machine read the processor's
clock (all threads).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from measuring import arguments, compare
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.similarities import max_match, smooth_chamfer, top_match

Similarity = Callable[[Tensor, Tensor], Tensor]


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
    for threads in options.threads:
        torch.set_num_threads(threads)
        for mode, run in (("scoring", _score), ("training", _train)):
            compare(
                f"{threads} threads, {mode}",
                {
                    similarity.__name__: partial(run, similarity, images, texts)
                    for similarity in (smooth_chamfer, max_match, top_match)
                },
                options.rounds,
            )


def _score(similarity: Similarity, images: Tensor, texts: Tensor) -> None:
    with torch.inference_mode():
        similarity(images, texts)


def _train(similarity: Similarity, images: Tensor, texts: Tensor) -> None:
    learning = images.detach().requires_grad_(), texts.detach().requires_grad_()
    torch.autograd.grad(similarity(*learning).sum(), learning)


if __name__ == "__main__":
    main()
