"""A model's folder as training leaves it, but with fresh weights."""

import torch
from small_methods import small

from manymatch.batch.vocabulary import Vocabulary
from manymatch.config.preset import Preset
from manymatch.methods import build_method, vocabulary_of
from manymatch.model.checkpoint import save_model
from manymatch.shards.read import read_index


def save_untrained(folder, data, name, settings=None, seed=0):
    """Write the method `name`, small, for the data's shards into `folder`, which it returns."""
    index, model_settings = read_index(data.shards), small(name, settings)
    words = vocabulary_of(name, model_settings, Vocabulary.load(data.vocabulary))
    torch.manual_seed(seed)
    method = build_method(name, model_settings, vocabulary=words, feature_width=index.width)
    preset = Preset(method=name, features=index.features, seed=seed, model=model_settings)
    save_model(folder, method, preset, words, index.width)
    return folder
