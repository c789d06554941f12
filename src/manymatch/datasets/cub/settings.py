"""Where the files of CUB are: `sources.cub` of params.yaml."""

from __future__ import annotations

from manymatch.config.strict import Strict
from manymatch.fetching.gather import Sources
from manymatch.fetching.sources import Source


class CubSettings(Strict):
    """One `folder` with files under their usual names, or each file's own source, or both (see
    `manymatch.fetching.gather` for which wins)."""

    folder: str | None = None
    images: Sources | None = None
    """`CUB_200_2011.tgz`, or a folder, which is used where it lies."""
    captions: Source | None = None
    """Reed's captions: an archive or a folder that holds CLASS/IMAGE.txt at any depth."""
    train_classes: Source | None = None
    test_classes: Source | None = None
    validation_classes: Source | None = None
    """Without it every tenth image of the training classes validates."""
    seen_test: Source | None = None
    """Images of training classes that are kept for the test."""
    only_present: bool = False
    """Leave out images without a picture."""
