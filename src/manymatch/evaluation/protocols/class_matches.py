"""Retrieval of the right class on CUB: R-Precision and R@1 in both settings."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from manymatch.evaluation.protocols.precision_at_r import both_ways
from manymatch.evaluation.protocols.subject import DoesNotApply, Subject

SETTINGS = ("all_classes", "zero_shot")


def classes(subject: Subject) -> dict[str, dict[str, dict[str, float]]]:
    """`i2t` and `t2i` with `r_precision` and `r1`, in percent, for each setting with images.

    Items of the query's class are positives. The setting `all_classes` has the images of seen
    classes (`Labels.seen`) and `zero_shot` all other images. Each setting is a gallery of its own.

    References:
        Chun et al., PCME, CVPR 2021, section 4.3; R-Precision of Musgrave et al., ECCV 2020.
    """
    labels = subject.labels
    if labels is None or any(len(image_labels) != 1 for image_labels in labels.of_images):
        raise DoesNotApply("R-Precision on classes needs one class label of every image")
    if not labels.seen:
        raise DoesNotApply("no class of a training image is known, so no class is known as unseen")
    class_of = torch.tensor([label for (label,) in labels.of_images])
    seen = torch.tensor([label in labels.seen for (label,) in labels.of_images])
    galleries = zip(SETTINGS, (seen, ~seen), strict=True)
    return {name: _setting(subject, class_of, rows) for name, rows in galleries if rows.any()}


def _setting(subject: Subject, class_of: Tensor, gallery: Tensor) -> dict[str, dict[str, float]]:
    def same_class(images: Tensor, others: Tensor) -> Iterator[Tensor]:
        yield class_of[images][:, None] == class_of[others]

    return {
        way: dict(zip(("r_precision", "r1"), values[0].tolist(), strict=True))
        for way, values in both_ways(subject, gallery, same_class).items()
    }
