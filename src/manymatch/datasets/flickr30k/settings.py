"""Where the files of Flickr30K are: `sources.flickr30k` of params.yaml."""

from __future__ import annotations

from manymatch.config.strict import Strict
from manymatch.fetching.gather import Sources
from manymatch.fetching.sources import Source


class Flickr30kSettings(Strict):
    """One `folder` with files under their usual names, or each file's own source, or both (see
    `manymatch.fetching.gather` for which wins)."""

    folder: str | None = None
    images: Sources | None = None
    """An archive, or a folder, which is used where it lies."""
    without_images: bool = False
    """For published features: no pictures are looked for."""
    captions: Source | None = None
    """Karpathy's `dataset_flickr30k.json` or a zip with it, a `*_precomp` folder, or Multi30K's
    folder of task 2."""
    only_present: bool = False
    """Leave out images without a picture."""
