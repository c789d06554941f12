"""HowTo100M's published model (Miech et al., ICCV 2019) as a trained model for warm starts.

The published model contains no word vectors, because the authors used word2vec. The vocabulary
contains only the special words.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from manymatch.batch.vocabulary import Vocabulary
from manymatch.config.preset import Preset
from manymatch.methods import build_method
from manymatch.model.checkpoint import save_model
from manymatch.networks.torch_file import load_tensors
from manymatch.util.errors import CheckpointError

FEATURES = "howto100m"
"""The name in params.yaml of the features that the model takes."""
_NAMES = {
    "text_pooling.fc": "text.linear",
    "GU_text.fc": "text_unit.project",
    "GU_text.cg.fc": "text_unit.gate",
    "GU_video.fc": "image_unit.project",
    "GU_video.cg.fc": "image_unit.gate",
}
_UNUSED = "batch_norm"
"""A module of every unit. The released code never runs this module."""


def import_howto100m(path: Path, folder: Path) -> None:
    """Write the published model in the file `path` as a trained model in `folder`.

    Raises:
        CheckpointError: parameters are missing or unknown, or their shapes do not fit.
        DataError: the file is not a file of torch.
    """
    state = _renamed(path, load_tensors(path))
    size, word_size = state["text.linear.weight"].shape
    width = state["image_unit.project.weight"].shape[1]
    preset = Preset(
        method="swamp_video",
        features=FEATURES,
        model={"size": size, "word_size": word_size, "weight": 0.0},
    )
    words = Vocabulary(Vocabulary.SPECIAL, trained=True)
    method = build_method("swamp_video", preset.model, vocabulary=words, feature_width=width)
    weights = method.state_dict()
    for name, value in state.items():
        if name not in weights or weights[name].shape != value.shape:
            raise CheckpointError(f"{path}: '{name}' {tuple(value.shape)} does not fit the others")
        weights[name].copy_(value)
    save_model(folder, method, preset, words, width)


def _renamed(path: Path, published: object) -> dict[str, Tensor]:
    """The parameters under the names of this project. Missing or further ones are an error."""
    if not isinstance(published, Mapping):
        raise CheckpointError(f"{path}: not the parameters of a model by name")
    state: dict[str, Tensor] = {}
    for name, value in published.items():
        module, _, kind = str(name).rpartition(".")
        if _UNUSED in module:
            continue
        if module not in _NAMES or not isinstance(value, Tensor) or not value.is_floating_point():
            raise CheckpointError(f"{path}: '{name}' is no parameter of HowTo100M's model")
        state[f"{_NAMES[module]}.{kind}"] = value.to(torch.float32)
    for module in _NAMES.values():
        weight = state.get(f"{module}.weight")
        if weight is None or weight.ndim != 2 or f"{module}.bias" not in state:
            raise CheckpointError(f"{path}: no '{module}', so not HowTo100M's model")
    return state
