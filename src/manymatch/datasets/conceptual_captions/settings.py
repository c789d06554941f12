"""Where the shards of Conceptual Captions are: `sources.conceptual_captions` of params.yaml."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from manymatch.config.strict import Strict
from manymatch.fetching.gather import Sources


class ConceptualCaptionsSettings(Strict):
    """One `folder` with all shards, or each shard's own source."""

    folder: str | None = None
    shards: Sources | None = None
    """Tar files with KEY.jpg, KEY.txt and KEY.json, as `img2dataset` writes them."""
    limit: Annotated[int, Field(ge=1)] | None = 1_000_000
    """The most training images; no shard is fetched or read beyond them. Null: all."""
    held_out: Annotated[float, Field(gt=0, lt=0.5)] = 0.005
    """The part of all images that validates, and the part of equal size that tests."""
