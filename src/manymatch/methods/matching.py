"""What VSE++, VSE-infinity and SwAMP train their scores by."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from manymatch.config.recipe import Positive
from manymatch.config.strict import Strict
from manymatch.losses.info_nce import info_nce
from manymatch.losses.triplet import Mining, triplet


class MatchingSettings(Strict):
    """The defaults are VSE++'s."""

    objective: Literal["triplet", "info_nce"] = "triplet"
    margin: Positive = 0.2
    temperature: Positive = 0.05
    """Of `info_nce`."""


class Matching:
    """The triplet loss with the hardest negatives, in the first epoch with all of them: from
    fresh weights the hardest alone lead to collapse. Or InfoNCE."""

    def __init__(self, settings: MatchingSettings) -> None:
        self.settings = settings
        self.mining: Mining = "hardest"

    def start_epoch(self, epoch: int) -> None:
        """To be called before each training epoch (0-based)."""
        self.mining = "all" if epoch == 0 else "hardest"

    def terms(self, scores: Tensor, owner: Tensor) -> dict[str, Tensor]:
        """The named term of `scores (n, m)`, `owner (m,)` the row of each caption's image."""
        chosen = self.settings
        if chosen.objective == "info_nce":
            return {"info_nce": info_nce(scores, owner, chosen.temperature)}
        return {"triplet": triplet(scores, owner, chosen.margin, self.mining)}
