"""COCO's positives beyond the annotated pairs: ECCV Caption and CxC, by the package `eccv_caption`.

The package holds the judgments and computes the metrics from the ranks made here.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from manymatch.evaluation.protocols.subject import DoesNotApply, Subject
from manymatch.evaluation.ranking.metrics import CUTS
from manymatch.evaluation.ranking.ranks import Direction

Ranked = dict[int, list[int]]
"""The best items of each query, by COCO's own numbers."""

Judged = Mapping[str, Mapping[int, Sequence[int]]]
"""The positives of each query of each direction."""

_NAMES = {"map_at_r": "eccv_map_at_r", "r_precision": "eccv_rprecision", "r1": "eccv_r1"}
_NUMBER = re.compile(r"[0-9]+$")


def eccv_caption(subject: Subject) -> dict[str, dict[str, float]]:
    """`i2t` and `t2i` with `map_at_r`, `r_precision` and `r1` in percent: 1,261 images and 1,332
    captions as queries.

    References:
        Chun et al., ECCV Caption, ECCV 2022.
    """
    package = _package()
    ranked = _ranked(subject, package.eccv_gts, "ECCV Caption")
    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar that cannot be turned off
        metrics = package.eccv_metrics(ranked, "all")
    return {
        way: {name: 100 * float(metrics[theirs][way]) for name, theirs in _NAMES.items()}
        for way in ranked
    }


def cxc(subject: Subject) -> dict[str, dict[str, float]]:
    """`i2t` and `t2i` with `r1`, `r5` and `r10` in percent: 5,000 images, 24,972 captions.

    References:
        Parekh et al., Crisscrossed Captions, EACL 2021.
    """
    package = _package()
    ranked = _ranked(subject, package.cxc_gts, "CxC")
    recalls = {cut: package.cxc_recalls(ranked, "all", K=cut) for cut in CUTS}
    return {way: {f"r{cut}": 100 * float(recalls[cut][way]) for cut in CUTS} for way in ranked}


@cache
def _package() -> Any:
    with warnings.catch_warnings():  # the package warns that it uses Python's own JSON reader
        warnings.simplefilter("ignore")
        from eccv_caption import Metrics

        return Metrics()


def _ranked(subject: Subject, judged: Judged, name: str) -> dict[str, Ranked]:
    """The best items of each query, as many as the package looks at."""
    images = _numbers(subject.embedded.image_ids)
    captions = _numbers(subject.embedded.caption_ids)
    _check_complete(images, judged["i2t"], f"{name}: images")
    _check_complete(captions, judged["t2i"], f"{name}: captions")
    most = max(len(items) for way in judged.values() for items in way.values())
    ranking = subject.ranked(max(most, *CUTS))
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
