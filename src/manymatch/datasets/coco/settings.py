"""Where the files of COCO are: `sources.coco` of params.yaml."""

from __future__ import annotations

from manymatch.config.strict import Strict
from manymatch.fetching.gather import Sources
from manymatch.fetching.sources import Source


class CocoSettings(Strict):
    """One `folder` with files under their usual names, or each file's own source, or both (see
    `manymatch.fetching.gather` for which wins)."""

    folder: str | None = None
    images: Sources | None = None
    """Archives, or one folder, which is used where it lies."""
    without_images: bool = False
    """For published features: no pictures are looked for."""
    captions: Sources | None = None
    """Karpathy's `dataset_coco.json` or a zip with it; or a `*_precomp` folder; or, with
    `caption_ids`, COCO's own `captions_*.json` or a zip with them."""
    caption_ids: Source | None = None
    """A folder with `coco_{train,restval,dev,test}_ids.npy`, ids of captions in Karpathy's splits
    (as PVSE and PCME have them)."""
    instances: Sources | None = None
    """`instances_*.json` or a zip with them: the categories that PMRP compares."""
    only_present: bool = False
    """Leave out images without a picture and captions that are in none of the files."""
