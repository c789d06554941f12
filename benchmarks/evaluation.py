"""Evaluating sets: how much ranking costs beyond the bare matrix product of all elements.

Random unit vectors, smooth-Chamfer, both directions, the best 100 of each query. Run

    python benchmarks/evaluation.py            # 5,000 images x 25,000 captions, K=4, D=1024
    python benchmarks/evaluation.py --small    # a tenth of both, in seconds

Both are timed in turns (`--rounds`), and the fastest of each counts. On a machine that other
programs keep busy the wall clock means little: run it on one thread (`OMP_NUM_THREADS=1`, so that
no thread burns time waiting for another) and read the processor time.
"""

from __future__ import annotations

import argparse

import torch
from measuring import arguments, clocks, peak_gib
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.evaluation.ranking.ranks import rank
from manymatch.methods.shared.method import Embeddings
from manymatch.similarities.sets import smooth_chamfer

ROWS = 4000
"""Rows of the bare product at once: it writes to one buffer, not to 8 GB of fresh memory."""


def main() -> None:
    options = arguments(
        __doc__,
        small=(False, "a tenth of the images and captions"),
        rounds=(1, "times each is measured"),
        depth=(100, "best items kept of each query"),
        sets=(4, "vectors per image and caption (K)"),
        width=(1024, "of a vector (D)"),
    )
    images, texts, image_index = _data(options)
    products, rankings = [], []
    for _ in range(options.rounds):
        products.append(clocks(lambda: _bare_product(images, texts)))
        rankings.append(clocks(lambda: rank(_score, images, texts, image_index, options.depth)))
    print(f"threads        {torch.get_num_threads()}")
    for number, clock in enumerate(("wall clock", "processor")):
        product, ranking = (min(times[number] for times in runs) for runs in (products, rankings))
        print(
            f"{clock:14} bare product {product:7.2f} s   evaluation {ranking:7.2f} s   "
            f"ratio {ranking / product:.3f}"
        )
    print(f"peak memory    {1024 * peak_gib():8.0f} MiB")


def _data(options: argparse.Namespace) -> tuple[Embeddings, Embeddings, Tensor]:
    n = 500 if options.small else 5000
    generator = torch.Generator().manual_seed(0)
    images, texts = (
        Embeddings(_unit_vectors(count, options.sets, options.width, generator))
        for count in (n, 5 * n)
    )
    return images, texts, torch.arange(n).repeat_interleave(5)


def _unit_vectors(count: int, sets: int, width: int, generator: torch.Generator) -> Tensor:
    vectors = torch.empty(count, sets, width)
    for part in vectors.split(1000):  # in pieces: a benchmark of memory should not waste it
        part.copy_(normalize(torch.randn(part.shape, generator=generator), dim=-1))
    return vectors


def _score(images: Embeddings, texts: Embeddings) -> Tensor:
    return smooth_chamfer(images.vectors, texts.vectors)


def _bare_product(images: Embeddings, texts: Embeddings) -> None:
    """All elements of all images times all elements of all captions, and nothing else."""
    rows, columns = images.vectors.flatten(0, 1), texts.vectors.flatten(0, 1).T
    buffer = torch.empty(ROWS, ROWS)
    for row in rows.split(ROWS):
        for column in columns.split(ROWS, dim=1):
            torch.mm(row, column, out=buffer[: len(row), : column.shape[1]])


if __name__ == "__main__":
    main()
