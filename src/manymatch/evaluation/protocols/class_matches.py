"""Retrieval of the right class on CUB: R-Precision and R@1 in both of its settings."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from manymatch.evaluation.protocols.precision_at_r import both_ways
from manymatch.evaluation.protocols.subject import DoesNotApply, Subject

SETTINGS = ("all_classes", "zero_shot")


def classes(subject: Subject) -> dict[str, dict[str, dict[str, float]]]:
    """`i2t` and `t2i` with `r_precision` and `r1`, in percent, of each setting with images here.

    What is of the query's class is relevant. `all_classes` are the images of seen classes
    (`Labels.seen`), `zero_shot` those of all others; each setting has a gallery of its own.

    References:
        Chun et al., PCME, CVPR 2021, section 4.3; R-Precision of Musgrave et al., ECCV 2020.
    """
    labels = subject.labels
    if labels is None or any(len(of_image) != 1 for of_image in labels.of_images):
        raise DoesNotApply("R-Precision on classes needs one class label of every image")
    if not labels.seen:
        raise DoesNotApply("no class of a training image is known, so none is known to be unseen")
    of_image = torch.tensor([label for (label,) in labels.of_images])
    seen = torch.tensor([label in labels.seen for (label,) in labels.of_images])
    chosen = zip(SETTINGS, (seen, ~seen), strict=True)
    return {name: _setting(subject, of_image, rows) for name, rows in chosen if rows.any()}


def _setting(subject: Subject, of_image: Tensor, chosen: Tensor) -> dict[str, dict[str, float]]:
    def same_class(images: Tensor, others: Tensor) -> Iterator[Tensor]:
        yield of_image[images][:, None] == of_image[others]

    found = both_ways(subject, chosen, same_class)
    return {
        way: dict(zip(("r_precision", "r1"), values[0].tolist(), strict=True))
        for way, values in found.items()
    }
