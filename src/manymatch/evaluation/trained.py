"""A trained model together with its embeddings of a split."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from manymatch.config.preset import Preset
from manymatch.evaluation.embed import Embedded, embed
from manymatch.evaluation.provenance import origin
from manymatch.methods.base import Method
from manymatch.methods.checkpoint import feature_width, load_model
from manymatch.shards.read import Index, batches, read_index
from manymatch.system.errors import CheckpointError
from manymatch.system.progress import track
from manymatch.text.wordpieces import AnyVocabulary

_IMAGES_PER_BATCH = 64


@dataclass(frozen=True)
class Trained:
    """The model in `folder` and what it makes of one split of `shards`."""

    folder: Path
    shards: Path
    method: Method
    preset: Preset
    vocabulary: AnyVocabulary
    index: Index
    found: Embedded

    def origin(self, stage: str) -> dict[str, Any]:
        """The origin of the results of this model, for the provenance file; `stage` is the module
        that ranks."""
        parameters = sum(parameter.numel() for parameter in self.method.parameters())
        return origin(self.folder, self.shards, self.preset, stage) | {"parameters": parameters}


def embed_split(folder: Path, shards: Path, split: str, device: torch.device) -> Trained:
    """Load the model in `folder` and embed a split with it, on `device`.

    Raises:
        CheckpointError: the model was trained on other features than the shards hold.
        DataError: the shards cannot be used.
    """
    method, preset, vocabulary = load_model(folder)
    index = read_index(shards)
    _check_fit(folder, preset, index)
    stream = batches(shards, split, vocabulary, _IMAGES_PER_BATCH)
    found = embed(method.to(device), track(stream, f"embed {split}", len(stream)), device)
    return Trained(folder, shards, method, preset, vocabulary, index, found)


def _check_fit(model: Path, preset: Preset, index: Index) -> None:
    width = feature_width(model)
    if (preset.features, width) != (index.features, index.width):
        raise CheckpointError(
            f"{model}: trained on '{preset.features}' features of width {width}, but the shards "
            f"hold '{index.features}' of width {index.width}; evaluate it on the shards of its "
            "own features, or train it again"
        )
