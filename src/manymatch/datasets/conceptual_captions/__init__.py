"""Conceptual Captions (Sharma et al. 2018): pictures of the web, one caption each, to pre-train on.

The pictures are not given out: `img2dataset` fetches them from the published addresses and writes
WebDataset shards, which are read here. An image's id is its key in the shards, its caption's id is
KEY#0. Validation and test splits are drawn by a hash of the key; no paper reports results on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from manymatch.datasets.base import Caption, Relevance
from manymatch.datasets.conceptual_captions.fetch import TABLE, fetch
from manymatch.datasets.conceptual_captions.samples import key_of
from manymatch.datasets.conceptual_captions.settings import ConceptualCaptionsSettings
from manymatch.foreign.text_lines import columns, numbered_lines


class ConceptualCaptions:
    """The dataset `conceptual_captions`; see `manymatch.datasets.base.Dataset`."""

    name = "conceptual_captions"

    def download(self, settings: ConceptualCaptionsSettings, raw: Path) -> None:
        """Put the pictures of the usable samples under `raw/images`, their captions beside."""
        fetch(settings, raw, self.name)

    def captions(self, raw: Path) -> Iterator[Caption]:
        """One row a picture, in the order of the shards and of the keys in each."""
        path = raw / TABLE
        for number, line in numbered_lines(path):
            where = f"{path}:{number}"
            file, split, text = columns(line, 3, where)
            key = key_of(Path(file).name)
            yield Caption(key, f"{key}#0", split, text, file, where=where)

    def relevance(self, raw: Path) -> Relevance | None:
        """None: nobody judged further pairs."""
        return None
