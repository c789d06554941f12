"""Metrics from ranks: recall, median and mean rank, and the multi-match metrics of ECCV Caption."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

CUTS = (1, 5, 10)

_DIGITS = 2
"""Decimals of a metric. One query of a thousand changes a recall by 0.1."""


def recall_metrics(ranks: Tensor) -> dict[str, float]:
    """`r1`, `r5`, `r10` in percent, `medr` (floor of the median) and `meanr` of 1-based
    `ranks (q,)`."""
    ranks = ranks.double()
    recalls = {f"r{cut}": 100 * (ranks <= cut).double().mean().item() for cut in CUTS}
    median = ranks.quantile(0.5).floor().item()
    return {**recalls, "medr": median, "meanr": ranks.mean().item()}


def rsum(*directions: dict[str, float]) -> float:
    """The sum of all recalls of both directions."""
    return sum(metrics[f"r{cut}"] for metrics in directions for cut in CUTS)


def rounded(values: Any) -> Any:
    """The metrics rounded to two decimals, as result files store them."""
    if isinstance(values, dict):
        return {name: rounded(value) for name, value in values.items()}
    if isinstance(values, list):
        return [rounded(value) for value in values]
    return round(values, _DIGITS)


@dataclass(frozen=True)
class RelevantRanks:
    """Ranks of the positives of q queries: `ranks (q, R)`, 1-based and ascending. The first
    `counts (q,)` entries of each row are real; the others are padding."""

    ranks: Tensor
    counts: Tensor


def multi_match_metrics(parts: Iterable[RelevantRanks]) -> dict[str, float]:
    """`map_at_r`, `r_precision` and `r1` in percent: the means over all queries of

    mAP@R = 1/R sum over r in 1..R of (precision at r if the item at r is relevant, else 0),
    R-P = the share of the first R items that is relevant, R@1 = whether the first item is relevant.
    R is the number of a query's relevant items.

    References:
        Chun et al., ECCV Caption, ECCV 2022, section 4.2.
    """
    values = torch.cat([_multi_match_of_queries(part) for part in parts])
    values = 100 * values.mean(0)
    return dict(zip(("map_at_r", "r_precision", "r1"), values.tolist(), strict=True))


def ambiguity(parts: Sequence[RelevantRanks]) -> dict[str, list[float]]:
    """mAP@R in percent by the number of positives of a query: 1, 2 to 3, 4 to 7 and so on.

    Returns the `least` number of positives, the number of `queries` and `map_at_r` of each group
    that has a query.
    """
    counts = torch.cat([part.counts for part in parts])
    precision = torch.cat([_multi_match_of_queries(part)[:, 0] for part in parts])
    exponents = counts.double().frexp().exponent - 1
    groups = {
        2**exponent: precision[exponents == exponent] for exponent in exponents.unique().tolist()
    }
    return {
        "least": [*groups],
        "queries": [len(group) for group in groups.values()],
        "map_at_r": [100 * group.mean().item() for group in groups.values()],
    }


def _multi_match_of_queries(part: RelevantRanks) -> Tensor:
    """mAP@R, R-P and R@1 of each query `(q, 3)`, float64 in 0..1."""
    counts = part.counts[:, None].double()
    position = torch.arange(1, part.ranks.shape[1] + 1, device=part.ranks.device)
    is_early = (position <= part.counts[:, None]) & (part.ranks <= part.counts[:, None])
    precision = position / part.ranks.double()
    average_precision = (precision * is_early).sum(1, keepdim=True) / counts
    r_precision = is_early.sum(1, keepdim=True) / counts
    return torch.cat([average_precision, r_precision, (part.ranks[:, :1] == 1).double()], 1)
