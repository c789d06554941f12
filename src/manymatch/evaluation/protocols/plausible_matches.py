"""Plausible-match R-precision (PMRP) on COCO: what shows nearly the same objects is right too."""

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
"""zeta: in how many labels a plausible match may differ."""


def pmrp(subject: Subject) -> dict[str, dict[str, Any]]:
    """`i2t` and `t2i`, the means over zeta, and the same of each zeta alone: `zeta0` to `zeta2`.

    All in percent: of 5,000 images `5k` and `1k` (the mean over the folds), of others `all`. A
    caption has its image's labels. An item is plausible if its labels differ from the query's in
    at most zeta; R-precision is averaged over the queries. Images without a label are left out,
    with their captions.

    References:
        Chun et al., PCME, CVPR 2021, section 3.4; images without instances as its code has it.
        Zeta by zeta: Wang et al., MSRM, CVPR 2023, figure 7.
    """
    labels = subject.labels or Labels([()] * len(subject.found.images))
    whole = _pmrp(subject, labels)
    if len(subject.found.images) != IMAGES:
        return {"all": whole}
    small = mean([_of_fold(subject, labels, fold) for fold in folds(IMAGES)])
    return {"5k": whole, "1k": small}


def differing_labels(labels: Labels, image: int, other: int) -> int | None:
    """The zeta from which on two images are plausible matches; None if one has no label."""
    left, right = {*labels.of_images[image]}, {*labels.of_images[other]}
    return len(left ^ right) if left and right else None


def _of_fold(subject: Subject, labels: Labels, fold: slice) -> dict[str, Any]:
    return _pmrp(replace(subject, found=part(subject.found, fold)), labels.part(fold))


def _pmrp(subject: Subject, labels: Labels) -> dict[str, Any]:
    codes = _codes(labels)
    if not codes.any():
        raise DoesNotApply("PMRP needs the images' object labels, and there are none")

    def relevant(images: Tensor, others: Tensor) -> Iterator[Tensor]:
        return _plausible(codes[images], codes[others])

    found = {
        way: values[:, 0] for way, values in both_ways(subject, codes.any(1), relevant).items()
    }
    alone = {
        f"zeta{zeta}": {way: values[row].item() for way, values in found.items()}
        for row, zeta in enumerate(DISTANCES)
    }
    return {way: values.mean().item() for way, values in found.items()} | alone


def _codes(labels: Labels) -> Tensor:
    """`(n, labels)`: 1 for each that an image has."""
    columns = {label: at for at, label in enumerate(sorted({*chain(*labels.of_images)}))}
    codes = torch.zeros(len(labels.of_images), len(columns))
    for row, of_image in enumerate(labels.of_images):
        codes[row, [columns[label] for label in of_image]] = 1
    return codes


def _plausible(queries: Tensor, items: Tensor) -> Iterator[Tensor]:
    """For each zeta which `items (g, labels)` are plausible for which `queries (q, labels)`."""
    differing = queries.sum(1, keepdim=True) + items.sum(1) - 2 * queries @ items.T
    for distance in DISTANCES:
        yield differing <= distance
