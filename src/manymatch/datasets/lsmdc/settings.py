"""Where the files of LSMDC are: `sources.lsmdc` of params.yaml."""

from __future__ import annotations

from manymatch.config.strict import Strict
from manymatch.fetching.sources import Source


class LsmdcSettings(Strict):
    """One `folder` with files under their usual names, or each file's own source, or both (see
    `manymatch.fetching.gather` for which wins)."""

    folder: str | None = None
    train: Source | None = None
    """`LSMDC16_annos_training.csv`."""
    validation: Source | None = None
    """`LSMDC16_annos_val.csv`; only with features of these clips."""
    test: Source | None = None
    """`LSMDC16_challenge_1000_publictect.csv`."""
