"""Where the files of Flickr8k are: `sources.flickr8k` of params.yaml."""

from __future__ import annotations

from pydantic import model_validator

from manymatch.config.strict import Strict
from manymatch.fetching.sources import Source
from manymatch.system.errors import ConfigError


class Flickr8kSettings(Strict):
    """One `folder` with files under their usual names, or each file's own source, or both (see
    `manymatch.fetching.gather` for which wins). The judgments are optional."""

    folder: str | None = None
    images: Source | None = None
    """An archive (tar, tar.gz, zip) or a folder."""
    captions: Source | None = None
    """`Flickr8k.token.txt`, which needs the three lists, or Karpathy's `dataset_flickr8k.json`."""
    train_list: Source | None = None
    validation_list: Source | None = None
    test_list: Source | None = None
    expert: Source | None = None
    crowd: Source | None = None

    @model_validator(mode="after")
    def _somewhere(self) -> Flickr8kSettings:
        # Not a ValueError: pydantic would wrap it, and the line is for a person to act on.
        if self.folder is None and None in (self.images, self.captions):
            raise ConfigError(
                "params.yaml: sources.flickr8k: set 'folder' to a folder with the dataset's files, "
                "or 'images' and 'captions' to where each is"
            )
        return self
