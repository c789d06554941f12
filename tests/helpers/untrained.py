"""A model's folder as training leaves it, but with fresh weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from small_methods import small
from tiny_data import TinyData

from manymatch.batch.vocabulary import Vocabulary
from manymatch.config.preset import Preset
from manymatch.methods import build_method, vocabulary_of
from manymatch.model.checkpoint import save_model
from manymatch.shards.read import read_index


def save_untrained(
    folder: Path, data: TinyData, name: str, settings: dict[str, Any] | None = None, seed: int = 0
) -> Path:
    """Write the method `name`, small, for the data's shards into `folder`, which it returns."""
    index, model_settings = read_index(data.shards), small(name, settings)
    words = vocabulary_of(name, model_settings, Vocabulary.load(data.vocabulary))
    torch.manual_seed(seed)
    method = build_method(name, model_settings, vocabulary=words, feature_width=index.width)
    preset = Preset(method=name, features=index.features, seed=seed, model=model_settings)
    save_model(folder, method, preset, words, index.width)
    return folder
