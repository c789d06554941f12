"""Where the files of YouCook2 are: `sources.youcook2` of params.yaml."""

from __future__ import annotations

from manymatch.config.strict import Strict
from manymatch.fetching.sources import Source


class Youcook2Settings(Strict):
    """One `folder` with files under their usual names, or each file's own source, or both (see
    `manymatch.fetching.gather` for which wins)."""

    folder: str | None = None
    annotations: Source | None = None
    """`youcookii_annotations_trainval.json`, the dataset's own."""
    train: Source | None = None
    """`youcook_train.pkl` of HowTo100M, in the annotations' place; the same file has features."""
    test: Source | None = None
    """`youcook_val.pkl`."""
