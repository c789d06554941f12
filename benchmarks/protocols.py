"""What the protocols with many true items a query cost at full size: PMRP, R-Precision, 1K folds.

Random vectors and labels of COCO's shape (80 labels, about three an image) and classes of CUB's
(200). Run

    python benchmarks/protocols.py            # 5,000 images x 25,000 captions, D=256
    python benchmarks/protocols.py --small    # a tenth of both, in seconds

On a busy machine set `OMP_NUM_THREADS=1` and read the processor's clock.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from manymatch.evaluation.embed import Embedded
from manymatch.evaluation.protocols.class_matches import classes
from manymatch.evaluation.protocols.coco_folds import IMAGES, coco_1k
from manymatch.evaluation.protocols.labels import Labels
from manymatch.evaluation.protocols.plausible_matches import pmrp
from manymatch.evaluation.protocols.subject import Subject
from manymatch.evaluation.ranking.ranks import rank
from manymatch.methods.base import Embeddings

Result = TypeVar("Result")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a tenth of the images and captions")
    parser.add_argument("--width", type=int, default=256, help="of a vector (D)")
    options = parser.parse_args()
    images = IMAGES // 10 if options.small else IMAGES
    print(f"{images:,} images x {5 * images:,} captions, {torch.get_num_threads()} threads")
    found = _embedded(images, options.width)
    of = {"objects": _objects(images), "classes": _classes(images)}
    subject = _timed("recall", lambda: _ranked(found, of["objects"]))
    _timed("PMRP", lambda: pmrp(subject))
    if not options.small:
        _timed("1K folds", lambda: coco_1k(subject))
    by_class = Subject(found, _score, None, subject.ranking, of["classes"])
    _timed("R-Precision", lambda: classes(by_class))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"peak memory    {peak:8.0f} MiB")


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


def _ranked(found: Embedded, labels: Labels) -> Subject:
    ranking = rank(_score, found.images, found.texts, found.image_index, depth=100)
    return Subject(found, _score, None, ranking, labels)


def _objects(images: int) -> Labels:
    """A few frequent labels and many rare ones; some images have none."""
    rng = np.random.default_rng(0)
    chances = 0.55 / np.arange(1, 81)
    return Labels([tuple(np.flatnonzero(rng.random(80) < chances)) for _ in range(images)])


def _classes(images: int) -> Labels:
    """200 classes, of which three in four were trained on."""
    return Labels([(image % 200,) for image in range(images)], frozenset(range(150)))


def _timed(name: str, run: Callable[[], Result]) -> Result:
    wall, processor = time.perf_counter(), time.process_time()
    found = run()
    took = time.perf_counter() - wall, time.process_time() - processor
    print(f"{name:14} wall clock {took[0]:7.1f} s   processor {took[1]:7.1f} s", flush=True)
    return found


if __name__ == "__main__":
    main()
