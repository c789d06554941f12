"""The metrics of an evaluated model."""

from __future__ import annotations

from typing import ClassVar

from manymatch.results.base import Result
from manymatch.results.retrieval import BothWays, MultiMatch, Recall
from manymatch.results.sets import SetMetrics


class Metrics(Result, Recall):
    """`multi` is present only if the data set has judgments beyond the annotated pairs, `sets` only
    for methods that embed a sample as several elements. The metrics of a data set's other protocols
    stand beside them under the protocols' names."""

    path: ClassVar[str] = "results/{dataset}/{preset}.json"
    remedy: ClassVar[str] = "Run 'manymatch evaluate {dataset} {preset}' again."

    multi: BothWays[MultiMatch] | None = None
    sets: SetMetrics | None = None
