"""A trained model as a folder of safetensors, YAML and JSON, and back; or one line why not.

model.safetensors  the weights; the file itself names its method
preset.yaml        the resolved preset
vocabulary.json    the words or wordpieces that the ids mean
model.json         feature width, the weights' hash, and which epoch they are of
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from manymatch.config.preset import Preset, read_preset
from manymatch.encoders.pretrained import structure_only
from manymatch.methods import build_method
from manymatch.methods.base import Method
from manymatch.system.errors import CheckpointError
from manymatch.system.files import replacing, sha256, write_json, write_text
from manymatch.text.wordpieces import AnyVocabulary, load_vocabulary

WEIGHTS, PRESET, VOCABULARY, FACTS = (
    "model.safetensors",
    "preset.yaml",
    "vocabulary.json",
    "model.json",
)


def save_model(
    folder: Path,
    method: Method,
    preset: Preset,
    vocabulary: AnyVocabulary,
    feature_width: int,
    **more: float | str,
) -> None:
    """Write the whole folder or nothing; `more` goes into `model.json`."""
    with replacing(folder) as partial:
        partial.mkdir()
        save_weights(partial / WEIGHTS, method, preset.method)
        write_text(partial / PRESET, preset.to_yaml())
        vocabulary.save(partial / VOCABULARY)
        known = {
            "method": preset.method,
            "feature_width": feature_width,
            "weights_sha256": sha256(partial / WEIGHTS),
        }
        write_json(partial / FACTS, known | more)


def save_weights(path: Path, method: Method, name: str) -> None:
    """Write the weights of `method` as safetensors that say they are of the method `name`."""
    # Clones: safetensors refuses tensors that share memory, as those of tied modules do, and
    # those in another order than the usual, as a CNN's are.
    plain = torch.contiguous_format
    state = {
        key: value.detach().cpu().clone(memory_format=plain)
        for key, value in method.state_dict().items()
    }
    with replacing(path) as partial:
        partial.write_bytes(save(state, metadata={"method": name}))


def load_model(folder: Path) -> tuple[Method, Preset, AnyVocabulary]:
    """The trained method (on the CPU, in evaluation mode), its preset and vocabulary.

    Raises:
        CheckpointError: a file is missing or unreadable, or weights and preset do not fit.
    """
    for name in (WEIGHTS, PRESET, VOCABULARY, FACTS):
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder}: no {name}, so not a trained model; run 'train' first")
    preset = read_preset(folder / PRESET)
    vocabulary = load_vocabulary(folder / VOCABULARY)
    width = feature_width(folder)
    with structure_only():
        method = build_method(
            preset.method, preset.model, vocabulary=vocabulary, feature_width=width
        )
    load_weights(folder / WEIGHTS, method, preset.method)
    return method.eval(), preset, vocabulary


def feature_width(folder: Path) -> int:
    """The width of the features that the model in `folder` takes."""
    try:
        return int(facts(folder)["feature_width"])
    except (ValueError, KeyError, TypeError) as error:
        raise _unusable(folder, error) from None


def facts(folder: Path) -> dict[str, Any]:
    """What `model.json` of the model in `folder` says."""
    try:
        found = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        return dict(found)
    except (OSError, ValueError, TypeError) as error:
        raise _unusable(folder, error) from None


def _unusable(folder: Path, error: Exception) -> CheckpointError:
    return CheckpointError(f"{folder / FACTS}: cannot be used ({error!r}); train the model again")


def load_weights(path: Path, method: Method, name: str) -> None:
    """Load weights of the method `name` into `method`, all of them or `CheckpointError`."""
    state, found = read_weights(path)
    if found not in (name, None):
        raise CheckpointError(
            f"{path}: weights of the method '{found}', but the preset is of '{name}'; "
            "give the folder that was trained by this preset"
        )
    _check_fit(path, state, method.state_dict())
    method.load_state_dict(state)


def read_weights(path: Path) -> tuple[dict[str, Tensor], str | None]:
    """Weights by name, and the method they say they are of."""
    try:
        with safe_open(path, framework="pt") as file:
            state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  no mapping
            return state, (file.metadata() or {}).get("method")
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: not readable as safetensors ({error})") from None


def _check_fit(path: Path, found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Refuse weights whose names or shapes are not those of the method."""
    missing, unexpected = expected.keys() - found.keys(), found.keys() - expected.keys()
    shapes = {
        key: f"{tuple(found[key].shape)} for {tuple(value.shape)}"
        for key, value in expected.items()
        if key in found and found[key].shape != value.shape
    }
    problems = (
        ("lacks", sorted(missing)),
        ("has an unknown", sorted(unexpected)),
        ("has another shape of", [f"{key} {shape}" for key, shape in shapes.items()]),
    )
    for problem, keys in problems:
        if keys:
            more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
            raise CheckpointError(
                f"{path}: {problem} '{keys[0]}'{more}; the weights do not belong to this preset"
            )
