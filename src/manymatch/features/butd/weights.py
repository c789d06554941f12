"""Load the public checkpoint by tensor names, with none missing and none unknown."""

from __future__ import annotations

import pickle
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from manymatch.features.butd.network import Convolution, Network, Sizes
from manymatch.foreign.regular_file import regular_path
from manymatch.system.errors import ConfigError

PUBLIC = "unc-nlp/frcnn-vg-finetuned"
_COUNTER = ".num_batches_tracked"
"""A counter that batch norms have in training. Some checkpoints contain it."""


def load_network(name: str, weights: str | None, sizes: Sizes | None = None) -> Network:
    """Return the network with the weights of a local file and folded batch norms."""
    if weights is None:
        raise ConfigError(f"{name}: no weights. Set weights to pytorch_model.bin of {PUBLIC}")
    with torch.device("meta"):
        network = Network(sizes)
    network.load_state_dict(_checked(Path(weights), network.state_dict()), assign=True)
    network.eval().requires_grad_(False)
    for module in network.modules():
        if isinstance(module, Convolution):
            module.fold()
    return network


def _checked(path: Path, expected: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of `path` if names and shapes are as expected."""
    tensors = _read(path)
    counters = {key for key in tensors.keys() | expected.keys() if key.endswith(_COUNTER)}
    missing = sorted(expected.keys() - tensors.keys() - counters)
    unknown = sorted(tensors.keys() - expected.keys())
    if missing or unknown:
        fault = f"lacks '{missing[0]}'" if missing else f"has the unknown '{unknown[0]}'"
        raise ConfigError(f"{path}: not the weights of {PUBLIC}: {fault}")
    for key in expected.keys() - counters:
        if tensors[key].shape != expected[key].shape:
            shapes = f"{tuple(tensors[key].shape)}, not {tuple(expected[key].shape)}"
            raise ConfigError(f"{path}: not the weights of {PUBLIC}: '{key}' is {shapes}")
        if not tensors[key].isfinite().all():
            raise ConfigError(
                f"{path}: '{key}' contains NaN or infinity. Download the weights again"
            )
    weights = {key: tensors[key].float().contiguous() for key in expected.keys() - counters}
    return weights | {key: torch.zeros((), dtype=torch.long) for key in counters}


def _read(path: Path) -> dict[str, Tensor]:
    try:
        with regular_path(path) as name:
            if path.suffix == ".safetensors":
                return load_file(name)
            tensors = torch.load(name, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: no such file of weights. Set weights to those of {PUBLIC}"
        ) from None
    except (OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError, SafetensorError):
        raise ConfigError(f"{path}: not the weights of {PUBLIC}: cannot be read") from None
    if isinstance(tensors, dict) and all(isinstance(value, Tensor) for value in tensors.values()):
        return tensors
    raise ConfigError(f"{path}: not the weights of {PUBLIC}: no tensors by name")
