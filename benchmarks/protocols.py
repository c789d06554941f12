"""What the protocols with many true items a query cost at full size: PMRP, R-Precision, 1K folds.

Random vectors and labels of COCO's shape (80 labels, about three an image) and classes of CUB's
(200). Run

    python benchmarks/protocols.py            # 5,000 images x 25,000 captions, D=256
    python benchmarks/protocols.py --small    # a tenth of both, in seconds

On a busy machine set `OMP_NUM_THREADS=1` and read the processor's clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from measuring import arguments, clocks, peak_gib
from torch import Tensor

from manymatch.evaluation.protocols.class_matches import classes
from manymatch.evaluation.protocols.coco import IMAGES, coco_1k, pmrp
from manymatch.evaluation.protocols.labels import Labels
from manymatch.evaluation.protocols.ranked_split import RankedSplit
from manymatch.evaluation.ranking.ranks import rank
from manymatch.methods.shared.method import Embeddings
from manymatch.model.embed import Embedded

Result = TypeVar("Result")


def main() -> None:
    options = arguments(
        __doc__, small=(False, "a tenth of the images and captions"), width=(256, "of a vector (D)")
    )
    images = IMAGES // 10 if options.small else IMAGES
    print(f"{images:,} images x {5 * images:,} captions, {torch.get_num_threads()} threads")
    embedded = _embedded(images, options.width)
    of = {
        "objects": _objects(images),
        "classes": Labels([(image % 200,) for image in range(images)], frozenset(range(150))),
    }
    subject = _timed("recall", lambda: _ranked(embedded, of["objects"]))
    _timed("PMRP", lambda: pmrp(subject))
    if not options.small:
        _timed("1K folds", lambda: coco_1k(subject))
    class_subject = RankedSplit(embedded, _score, None, subject.ranking, of["classes"])
    _timed("R-Precision", lambda: classes(class_subject))
    print(f"peak memory    {1024 * peak_gib():8.0f} MiB")


def _embedded(images: int, width: int) -> Embedded:
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(images, 1, width, generator=generator)
    noise = torch.randn(5 * images, 1, width, generator=generator)
    texts = Embeddings(vectors.repeat_interleave(5, 0) + noise)
    names = [str(number) for number in range(5 * images)]
    image_index = torch.arange(images).repeat_interleave(5)
    return Embedded(Embeddings(vectors), texts, names[:images], names, image_index)


def _score(images: Embeddings, texts: Embeddings) -> Tensor:
    return images.vectors[:, 0] @ texts.vectors[:, 0].T


def _ranked(embedded: Embedded, labels: Labels) -> RankedSplit:
    ranking = rank(_score, embedded.images, embedded.texts, embedded.image_index, depth=100)
    return RankedSplit(embedded, _score, None, ranking, labels)


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
