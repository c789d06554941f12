"""COCO: galleries of 1,000 images, plausible matches, and judgments beyond the annotated pairs."""

import contextlib
import io
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from manymatch.evaluation.protocols.class_matches import both_ways
from manymatch.evaluation.protocols.ranked_split import DoesNotApply, Protocol, RankedSplit, part
from manymatch.evaluation.protocols.recall import recall
from manymatch.evaluation.protocols.relevance import Labels
from manymatch.evaluation.ranking.metrics import CUTS
from manymatch.evaluation.ranking.ranks import Direction
from manymatch.similarities.blocks import runs

IMAGES, FOLD = 5000, 1000


def folds(images: int) -> list[slice]:
    """The five runs of 1,000 images; `DoesNotApply` unless there are 5,000 images."""
    if images != IMAGES:
        raise DoesNotApply(f"COCO's 1K setting needs all {IMAGES:,} test images, not {images:,}")
    return runs(IMAGES, FOLD)


def coco_1k(split: RankedSplit) -> dict[str, Any]:
    """`i2t`, `t2i` and `rsum` (`protocols.recall`): the means over the folds.

    References:
        Karpathy and Fei-Fei, CVPR 2015; averaged as in SCAN and its followers.
    """
    parts = [part(split.embedded, fold) for fold in folds(len(split.embedded.images))]
    return mean([recall(split.score, *fold.gallery, t2i_score=split.t2i_score) for fold in parts])


def mean(values: list[Any]) -> Any:
    """The mean of each number of nested metrics with the same keys."""
    first = values[0]
    if isinstance(first, dict):
        return {key: mean([value[key] for value in values]) for key in first}
    return torch.tensor(values, dtype=torch.float64).mean().item()


DISTANCES = (0, 1, 2)
"""The values of zeta: the number of labels in which a plausible match may differ."""


def pmrp(split: RankedSplit) -> dict[str, dict[str, Any]]:
    """`i2t` and `t2i`, the means over zeta, and the same values for each zeta: `zeta0` to `zeta2`.

    All values are in percent: `5k` and `1k` (the mean over the folds) for 5,000 images, `all` for
    another number of images. A caption has its image's labels. An item is plausible if its labels
    differ from the query's in at most zeta labels; R-precision is averaged over the queries.
    Images without a label are left out, with their captions.

    References:
        Chun et al., PCME, CVPR 2021, section 3.4; images without instances as in its code.
        Single zetas: Wang et al., MSRM, CVPR 2023, figure 7.
    """
    labels = split.labels or Labels([()] * len(split.embedded.images))
    whole = _pmrp(split, labels)
    if len(split.embedded.images) != IMAGES:
        return {"all": whole}
    parts = [
        _pmrp(replace(split, embedded=part(split.embedded, fold)), labels.part(fold))
        for fold in folds(IMAGES)
    ]
    return {"5k": whole, "1k": mean(parts)}


def differing_labels(labels: Labels, image: int, other: int) -> int | None:
    """The smallest zeta with which two images are plausible matches; None if an image has no
    label."""
    left, right = {*labels.image_labels[image]}, {*labels.image_labels[other]}
    return len(left ^ right) if left and right else None


def _pmrp(split: RankedSplit, labels: Labels) -> dict[str, Any]:
    codes = _codes(labels)
    if not codes.any():
        raise DoesNotApply("PMRP needs the images' object labels, and there are none")

    def relevant(images: Tensor, others: Tensor) -> Iterator[Tensor]:
        one, other = codes[images], codes[others]  # (q, labels) and (g, labels)
        differing = one.sum(1, keepdim=True) + other.sum(1) - 2 * one @ other.T
        for distance in DISTANCES:
            yield differing <= distance

    precision = {
        way: values[:, 0] for way, values in both_ways(split, codes.any(1), relevant).items()
    }
    distances = {
        f"zeta{zeta}": {way: values[row].item() for way, values in precision.items()}
        for row, zeta in enumerate(DISTANCES)
    }
    return {way: values.mean().item() for way, values in precision.items()} | distances


def _codes(labels: Labels) -> Tensor:
    """`(n, labels)`: 1 where the image has the label."""
    columns = {label: column for column, label in enumerate(sorted({*chain(*labels.image_labels)}))}
    codes = torch.zeros(len(labels.image_labels), len(columns))
    for row, own in enumerate(labels.image_labels):
        codes[row, [columns[label] for label in own]] = 1
    return codes


Ranked = dict[int, list[int]]
"""The best items of each query, by COCO's own numbers."""

Judged = Mapping[str, Mapping[int, Sequence[int]]]
"""The positives of each query of each direction."""

_NAMES = {"map_at_r": "eccv_map_at_r", "r_precision": "eccv_rprecision", "r1": "eccv_r1"}
_NUMBER = re.compile(r"[0-9]+$")


def eccv_caption(split: RankedSplit) -> dict[str, dict[str, float]]:
    """`i2t` and `t2i` with `map_at_r`, `r_precision` and `r1` in percent: 1,261 images and 1,332
    captions as queries.

    References:
        Chun et al., ECCV Caption, ECCV 2022.
    """
    package = judgments()
    ranked = _ranked(split, package.eccv_gts, "ECCV Caption")
    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar that cannot be turned off
        metrics = package.eccv_metrics(ranked, "all")
    return {
        way: {name: 100 * float(metrics[theirs][way]) for name, theirs in _NAMES.items()}
        for way in ranked
    }


def cxc(split: RankedSplit) -> dict[str, dict[str, float]]:
    """`i2t` and `t2i` with `r1`, `r5` and `r10` in percent: 5,000 images, 24,972 captions.

    References:
        Parekh et al., Crisscrossed Captions, EACL 2021.
    """
    package = judgments()
    ranked = _ranked(split, package.cxc_gts, "CxC")
    recalls = {cut: package.cxc_recalls(ranked, "all", K=cut) for cut in CUTS}
    return {way: {f"r{cut}": 100 * float(recalls[cut][way]) for cut in CUTS} for way in ranked}


@cache
def judgments() -> Any:
    """ECCV Caption and CxC, as the package `eccv_caption` holds them."""
    # The package warns that it uses Python's own JSON reader.
    with warnings.catch_warnings(action="ignore"):
        from eccv_caption import Metrics

        return Metrics()


def _ranked(split: RankedSplit, judged: Judged, name: str) -> dict[str, Ranked]:
    """The best items of each query, as many as the package looks at."""
    images = _numbers(split.embedded.image_ids)
    captions = _numbers(split.embedded.caption_ids)
    _check_complete(images, judged["i2t"], f"{name}: images")
    _check_complete(captions, judged["t2i"], f"{name}: captions")
    most = max(len(items) for way in judged.values() for items in way.values())
    ranking = split.ranked(max(most, *CUTS))
    return {
        "i2t": _best(ranking.i2t, images, captions),
        "t2i": _best(ranking.t2i, captions, images),
    }


def _best(direction: Direction, queries: Sequence[int], items: Sequence[int]) -> Ranked:
    best = direction.items.tolist()
    return {query: [items[row] for row in rows] for query, rows in zip(queries, best, strict=True)}


def _numbers(ids: Iterable[str]) -> list[int]:
    """COCO's numbers at the ends of the ids; -1 for an id without a number."""
    matches = (_NUMBER.search(name) for name in ids)
    return [int(match[0]) if match else -1 for match in matches]


def _check_complete(numbers: Sequence[int], judged: Iterable[int], what: str) -> None:
    known, needed = set(numbers), list(judged)
    missing = sum(number not in known for number in needed)
    if missing:
        raise DoesNotApply(f"{what}: {missing:,} of the {len(needed):,} judged are missing")


PROTOCOLS = [
    Protocol("coco_1k", ("coco",), coco_1k),
    Protocol("pmrp", ("coco",), pmrp),
    Protocol("eccv_caption", ("coco",), eccv_caption),
    Protocol("cxc", ("coco",), cxc),
]
