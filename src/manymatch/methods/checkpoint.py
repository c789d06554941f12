"""A trained model as a folder of safetensors, YAML and JSON: writing and reading.

model.safetensors  the weights, and the name of their method
preset.yaml        the resolved preset
vocabulary.json    the words or wordpieces, in the order of their ids
model.json         feature width, the hash of the weights, and their epoch
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
    """Write the whole folder or nothing; `more` is added to `model.json`."""
    with replacing(folder) as partial:
        partial.mkdir()
        save_weights(partial / WEIGHTS, method, preset.method)
        write_text(partial / PRESET, preset.to_yaml())
        vocabulary.save(partial / VOCABULARY)
        facts = {
            "method": preset.method,
            "feature_width": feature_width,
            "weights_sha256": sha256(partial / WEIGHTS),
        }
        write_json(partial / FACTS, facts | more)


def save_weights(path: Path, method: Method, name: str) -> None:
    """Write the weights of `method` as safetensors, with the method's `name`."""
    # Safetensors refuses tensors that share memory, such as tied weights, and tensors in an unusual
    # memory format, such as a CNN's; clones are neither.
    plain = torch.contiguous_format
    state = {
        key: value.detach().cpu().clone(memory_format=plain)
        for key, value in method.state_dict().items()
    }
    with replacing(path) as partial:
        partial.write_bytes(save(state, metadata={"method": name}))


def load_model(folder: Path) -> tuple[Method, Preset, AnyVocabulary]:
    """The trained method (on the CPU, in evaluation mode), its preset and its vocabulary.

    Raises:
        CheckpointError: a file is missing or unreadable, or the weights do not fit the preset.
    """
    for name in (WEIGHTS, PRESET, VOCABULARY, FACTS):
        if not (folder / name).is_file():
            raise CheckpointError(
                f"{folder}: not a trained model, because {name} is missing. Run 'train' first."
            )
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
    """F, the width of the image features of the model in `folder`."""
    try:
        return int(facts(folder)["feature_width"])
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise _unusable(folder, error) from None


def facts(folder: Path) -> dict[str, Any]:
    """The content of `model.json` in `folder`."""
    try:
        return dict(json.loads((folder / FACTS).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise _unusable(folder, error) from None


def _unusable(folder: Path, error: Exception) -> CheckpointError:
    return CheckpointError(f"{folder / FACTS}: cannot be used ({error!r}). Train the model again.")


def load_weights(path: Path, method: Method, name: str) -> None:
    """Load all weights of the method `name` into `method`.

    Raises:
        CheckpointError: the file is unreadable, or its weights do not fit `method`.
    """
    state, stored_name = read_weights(path)
    if stored_name not in (name, None):
        raise CheckpointError(
            f"{path}: weights of the method '{stored_name}', but the preset is of '{name}'. "
            "Set the folder that was trained by this preset."
        )
    _check_fit(path, state, method.state_dict())
    method.load_state_dict(state)


def read_weights(path: Path) -> tuple[dict[str, Tensor], str | None]:
    """The weights by name, and the name of their method as the file states it."""
    try:
        with safe_open(path, framework="pt") as file:
            state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  no mapping
            return state, (file.metadata() or {}).get("method")
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: not readable as safetensors ({error})") from None


def _check_fit(path: Path, stored: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Refuse weights whose names or shapes differ from the method's."""
    missing, unexpected = expected.keys() - stored.keys(), stored.keys() - expected.keys()
    shapes = {
        key: f"{tuple(stored[key].shape)} for {tuple(value.shape)}"
        for key, value in expected.items()
        if key in stored and stored[key].shape != value.shape
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
                f"{path}: {problem} '{keys[0]}'{more}. The weights do not belong to this preset."
            )
