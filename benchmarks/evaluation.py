"""Evaluation at full size: ranking sets, and the protocols with many positives of a query.

Ranking is compared with the bare matrix product of all elements: random unit vectors,
smooth-Chamfer, both directions, the best 100 of each query. The protocols are PMRP, R-Precision and
COCO's 1K folds, on random vectors of 256 numbers with labels of COCO's shape (80 labels, about
three an image) and classes of CUB's (200). Run

    python benchmarks/evaluation.py            # 5,000 images x 25,000 captions, K=4, D=1024
    python benchmarks/evaluation.py --small    # a tenth of both, in seconds

Both are timed in turns (`--rounds`), and medians count. On a machine that other programs keep busy
the wall clock means little: run it on one thread (`OMP_NUM_THREADS=1`, so that no thread burns time
waiting for another) and read the processor time.
"""

import argparse
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from measuring import arguments, clocks, compare, peak_gib
from torch import Tensor
from torch.nn.functional import normalize

from manymatch.evaluation.protocols.class_matches import classes
from manymatch.evaluation.protocols.coco import coco_1k, pmrp
from manymatch.evaluation.protocols.labels import Labels
from manymatch.evaluation.protocols.ranked_split import RankedSplit
from manymatch.evaluation.ranking.ranks import rank
from manymatch.methods.shared.method import Embeddings
from manymatch.model.embed import Embedded
from manymatch.similarities.sets import smooth_chamfer

Result = TypeVar("Result")

PROTOCOL_WIDTH = 256
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
    compare(
        f"{len(images)} images x {len(texts)} captions, {torch.get_num_threads()} threads",
        {
            "bare product": lambda: _bare_product(images, texts),
            "evaluation": lambda: rank(_score, images, texts, image_index, options.depth),
        },
        options.rounds,
        warm_up=0,
    )
    protocols(len(images), options.small)
    print(f"peak memory    {1024 * peak_gib():8.0f} MiB")


def protocols(count: int, small: bool) -> None:
    """The times of the protocols with `count` images, each measured once."""
    embedded = _embedded(count, PROTOCOL_WIDTH)
    objects = _objects(count)
    classes_of = Labels([(image % 200,) for image in range(count)], frozenset(range(150)))
    sides = embedded.images, embedded.texts, embedded.image_index
    ranking = _timed("recall", lambda: rank(_cosine, *sides, depth=100))
    ranked, by_class = (
        RankedSplit(embedded, _cosine, None, ranking, labels) for labels in (objects, classes_of)
    )
    _timed("PMRP", lambda: pmrp(ranked))
    if not small:
        _timed("1K folds", lambda: coco_1k(ranked))
    _timed("R-Precision", lambda: classes(by_class))


def _data(options: argparse.Namespace) -> tuple[Embeddings, Embeddings, Tensor]:
    n = 500 if options.small else 5000
    generator = torch.Generator().manual_seed(0)

    def made(count: int) -> Embeddings:
        vectors = torch.empty(count, options.sets, options.width)
        for part in vectors.split(1000):  # in pieces: a benchmark of memory should not waste it
            part.copy_(normalize(torch.randn(part.shape, generator=generator), dim=-1))
        return Embeddings(vectors)

    return made(n), made(5 * n), torch.arange(n).repeat_interleave(5)


def _score(images: Embeddings, texts: Embeddings) -> Tensor:
    return smooth_chamfer(images.vectors, texts.vectors)


def _bare_product(images: Embeddings, texts: Embeddings) -> None:
    """All elements of all images times all elements of all captions, and nothing else."""
    rows, columns = images.vectors.flatten(0, 1), texts.vectors.flatten(0, 1).T
    buffer = torch.empty(ROWS, ROWS)
    for row in rows.split(ROWS):
        for column in columns.split(ROWS, dim=1):
            torch.mm(row, column, out=buffer[: len(row), : column.shape[1]])


def _embedded(images: int, width: int) -> Embedded:
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(images, 1, width, generator=generator)
    noise = torch.randn(5 * images, 1, width, generator=generator)
    texts = Embeddings(vectors.repeat_interleave(5, 0) + noise)
    names = [str(number) for number in range(5 * images)]
    image_index = torch.arange(images).repeat_interleave(5)
    return Embedded(Embeddings(vectors), texts, names[:images], names, image_index)


def _cosine(images: Embeddings, texts: Embeddings) -> Tensor:
    return images.vectors[:, 0] @ texts.vectors[:, 0].T


def _objects(images: int) -> Labels:
    """A few frequent labels and many rare ones; some images have none."""
    rng = np.random.default_rng(0)
    chances = 0.55 / np.arange(1, 81)
    return Labels([tuple(np.flatnonzero(rng.random(80) < chances)) for _ in range(images)])


def _timed(name: str, run: Callable[[], Result]) -> Result:
    results: list[Result] = []
    wall, processor = clocks(lambda: results.append(run()))
    print(f"{name:14} wall clock {wall:7.1f} s   processor {processor:7.1f} s", flush=True)
    return results[0]


if __name__ == "__main__":
    main()
