"""Plausible-match R-precision (PMRP) on COCO: items with nearly the same objects are positives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from manymatch.evaluation.protocols.coco_folds import IMAGES, folds, mean
from manymatch.evaluation.protocols.labels import Labels
from manymatch.evaluation.protocols.precision_at_r import both_ways
from manymatch.evaluation.protocols.subject import DoesNotApply, Subject, part

DISTANCES = (0, 1, 2)
"""The values of zeta: the number of labels in which a plausible match may differ."""


def pmrp(subject: Subject) -> dict[str, dict[str, Any]]:
    """`i2t` and `t2i`, the means over zeta, and the same values for each zeta: `zeta0` to `zeta2`.

    All values are in percent: `5k` and `1k` (the mean over the folds) for 5,000 images, `all` for
    another number of images. A caption has its image's labels. An item is plausible if its labels
    differ from the query's in at most zeta labels; R-precision is averaged over the queries.
    Images without a label are left out, with their captions.

    References:
        Chun et al., PCME, CVPR 2021, section 3.4; images without instances as in its code.
        Single zetas: Wang et al., MSRM, CVPR 2023, figure 7.
    """
    labels = subject.labels or Labels([()] * len(subject.embedded.images))
    whole = _pmrp(subject, labels)
    if len(subject.embedded.images) != IMAGES:
        return {"all": whole}
    parts = [
        _pmrp(replace(subject, embedded=part(subject.embedded, fold)), labels.part(fold))
        for fold in folds(IMAGES)
    ]
    return {"5k": whole, "1k": mean(parts)}


def differing_labels(labels: Labels, image: int, other: int) -> int | None:
    """The smallest zeta with which two images are plausible matches; None if an image has no
    label."""
    left, right = {*labels.of_images[image]}, {*labels.of_images[other]}
    return len(left ^ right) if left and right else None


def _pmrp(subject: Subject, labels: Labels) -> dict[str, Any]:
    codes = _codes(labels)
    if not codes.any():
        raise DoesNotApply("PMRP needs the images' object labels, and there are none")

    def relevant(images: Tensor, others: Tensor) -> Iterator[Tensor]:
        return _plausible(codes[images], codes[others])

    precision = {
        way: values[:, 0] for way, values in both_ways(subject, codes.any(1), relevant).items()
    }
    by_distance = {
        f"zeta{zeta}": {way: values[row].item() for way, values in precision.items()}
        for row, zeta in enumerate(DISTANCES)
    }
    return {way: values.mean().item() for way, values in precision.items()} | by_distance


def _codes(labels: Labels) -> Tensor:
    """`(n, labels)`: 1 where the image has the label."""
    columns = {label: column for column, label in enumerate(sorted({*chain(*labels.of_images)}))}
    codes = torch.zeros(len(labels.of_images), len(columns))
    for row, image_labels in enumerate(labels.of_images):
        codes[row, [columns[label] for label in image_labels]] = 1
    return codes


def _plausible(queries: Tensor, items: Tensor) -> Iterator[Tensor]:
    """For each zeta a mask `(q, g)`: the `items (g, labels)` that are plausible for `queries`."""
    differing = queries.sum(1, keepdim=True) + items.sum(1) - 2 * queries @ items.T
    for distance in DISTANCES:
        yield differing <= distance
