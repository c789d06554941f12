"""Loading the public checkpoint: every tensor by its name, none missing, none left over."""

from __future__ import annotations

import pickle
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from manymatch.features.butd.network import Convolution, Network, Sizes
from manymatch.system.errors import ConfigError

PUBLIC = "unc-nlp/frcnn-vg-finetuned"
_COUNTER = ".num_batches_tracked"
"""Of a batch norm in training; some checkpoints have it."""


def load_network(name: str, weights: str | None, sizes: Sizes | None = None) -> Network:
    """The network with the weights of a local file, batch norms folded in."""
    if weights is None:
        raise ConfigError(f"{name}: set weights to the file pytorch_model.bin of {PUBLIC}")
    with torch.device("meta"):
        network = Network(sizes)
    network.load_state_dict(_checked(Path(weights), network.state_dict()), assign=True)
    network.eval().requires_grad_(False)
    for module in network.modules():
        if isinstance(module, Convolution):
            module.fold()
    return network


def _checked(path: Path, expected: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of `path`, if they are those that are expected."""
    found = _read(path)
    counters = {key for key in found.keys() | expected.keys() if key.endswith(_COUNTER)}
    missing = sorted(expected.keys() - found.keys() - counters)
    left_over = sorted(found.keys() - expected.keys())
    if missing or left_over:
        fault = f"lacks '{missing[0]}'" if missing else f"has '{left_over[0]}' besides"
        raise ConfigError(f"{path}: not the weights of {PUBLIC}: {fault}")
    for key in expected.keys() - counters:
        if found[key].shape != expected[key].shape:
            shapes = f"{tuple(found[key].shape)}, not {tuple(expected[key].shape)}"
            raise ConfigError(f"{path}: not the weights of {PUBLIC}: '{key}' is {shapes}")
        if not found[key].isfinite().all():
            raise ConfigError(f"{path}: '{key}' holds NaN or infinity; fetch the weights again")
    tensors = {key: found[key].float().contiguous() for key in expected.keys() - counters}
    return tensors | {key: torch.zeros((), dtype=torch.long) for key in counters}


def _read(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        found = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file of weights; set weights to {PUBLIC}'s") from None
    except (OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError, SafetensorError):
        raise ConfigError(f"{path}: not the weights of {PUBLIC}: cannot be read") from None
    if isinstance(found, dict) and all(isinstance(value, Tensor) for value in found.values()):
        return found
    raise ConfigError(f"{path}: not the weights of {PUBLIC}: no tensors by name")
