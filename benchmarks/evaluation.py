"""Ranking sets at full size against one bare matrix product of all elements.

    python benchmarks/evaluation.py            # 5,000 images x 25,000 captions, K=4, D=1024
    python benchmarks/evaluation.py --small    # a tenth of both, in seconds

Random unit vectors, smooth-Chamfer, both directions, the best 100 of each query. Both are timed in
turns (`--rounds`), and medians count. On a machine that other programs keep busy the wall clock
means little: run it on one thread (`OMP_NUM_THREADS=1`, so that no thread burns time waiting for
another) and read the processor time.
"""

import torch
from measuring import arguments, compare, peak_gib
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
    count = 500 if options.small else 5000
    images, texts = (made_up(n, options.sets, options.width) for n in (count, 5 * count))
    image_index = torch.arange(count).repeat_interleave(5)
    compare(
        f"{count} images x {5 * count} captions, {torch.get_num_threads()} threads",
        {
            "bare product": lambda: bare_product(images.vectors, texts.vectors),
            "evaluation": lambda: rank(score, images, texts, image_index, options.depth),
        },
        options.rounds,
        warm_up=0,
    )
    print(f"peak memory    {1024 * peak_gib():8.0f} MiB")


def made_up(count: int, sets: int, width: int) -> Embeddings:
    vectors = torch.empty(count, sets, width)
    for part in vectors.split(1000):  # in pieces: a benchmark of memory should not waste it
        part.copy_(normalize(torch.randn(part.shape), dim=-1))
    return Embeddings(vectors)


def score(images: Embeddings, texts: Embeddings) -> Tensor:
    return smooth_chamfer(images.vectors, texts.vectors)


def bare_product(images: Tensor, texts: Tensor) -> None:
    """All elements of all images times all elements of all captions, and nothing else."""
    rows, columns = images.flatten(0, 1), texts.flatten(0, 1).T
    buffer = torch.empty(ROWS, ROWS)
    for row in rows.split(ROWS):
        for column in columns.split(ROWS, dim=1):
            torch.mm(row, column, out=buffer[: len(row), : column.shape[1]])


if __name__ == "__main__":
    main()
