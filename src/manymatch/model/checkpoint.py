"""A trained model as a folder of safetensors, YAML and JSON: writing and reading.

model.safetensors  the weights, and the name of their method
preset.yaml        the resolved preset
vocabulary.json    the words or wordpieces, in the order of their ids
model.json         feature width, the hashes of the other files, and the epoch of the weights:
                   `methods.facts`
README.md          the model card
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from manymatch.batch.wordpieces import AnyVocabulary, load_vocabulary
from manymatch.config.preset import Preset, read_preset
from manymatch.methods import build_method
from manymatch.methods.base import Method
from manymatch.model.facts import FACTS, REMEDY, facts
from manymatch.model.model_card import model_card
from manymatch.networks.encoders.pretrained import structure_only
from manymatch.util.errors import CheckpointError
from manymatch.util.files import has_sha256, replacing, sha256, write_text
from manymatch.util.json_file import write_hashed_object
from manymatch.util.regular_file import regular_path

WEIGHTS, PRESET, VOCABULARY = "model.safetensors", "preset.yaml", "vocabulary.json"
CARD = "README.md"
FILES = [WEIGHTS, PRESET, VOCABULARY, FACTS, CARD]
"""All files of a model."""
TRAINED_IN = "trained_in"
"""The key of `model.json` for the precision of the training, as the preset names precisions."""
WEIGHTS_HASH, VOCABULARY_HASH = "weights_sha256", "vocabulary_sha256"
HASHES = {WEIGHTS: WEIGHTS_HASH, PRESET: "preset_sha256", VOCABULARY: VOCABULARY_HASH}
"""The key of `model.json` for the hash of each file. Together the hashes tell models apart."""


def save_model(
    folder: Path,
    method: Method,
    preset: Preset,
    vocabulary: AnyVocabulary,
    feature_width: int,
    **more: Any,
) -> None:
    """Write the whole folder or nothing; `more` is added to `model.json`."""
    with replacing(folder) as partial:
        partial.mkdir()
        save_weights(partial / WEIGHTS, method, preset.method)
        write_text(partial / PRESET, preset.to_yaml())
        vocabulary.save(partial / VOCABULARY)
        content = {
            "method": preset.method,
            "feature_width": feature_width,
            **{key: sha256(partial / name) for name, key in HASHES.items()},
        } | more
        write_hashed_object(partial / FACTS, content)
        write_text(partial / CARD, model_card(preset, content))


def save_weights(path: Path, method: Method, name: str) -> str:
    """Write the weights of `method` as safetensors, with the method's `name`. Return the SHA-256
    of the file."""
    # Safetensors refuses tensors that share memory, such as tied weights, and tensors in an unusual
    # memory format, such as a CNN's; clones are neither.
    plain = torch.contiguous_format
    state = {
        key: value.detach().cpu().clone(memory_format=plain)
        for key, value in method.state_dict().items()
    }
    content = save(state, metadata={"method": name})
    with replacing(path) as partial:
        partial.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def load_model(folder: Path) -> tuple[Method, Preset, AnyVocabulary]:
    """The trained method (on the CPU, in evaluation mode), its preset and its vocabulary.

    Raises:
        CheckpointError: a file is missing or damaged, or the weights do not fit the preset.
    """
    for name in (WEIGHTS, PRESET, VOCABULARY, FACTS):
        if not (folder / name).is_file():
            raise CheckpointError(
                f"{folder}: not a trained model, because {name} is missing. Run 'train' first."
            )
    check_files(folder)
    preset = read_preset(folder / PRESET, foreign=True)
    vocabulary = load_vocabulary(folder / VOCABULARY)
    width = facts(folder)["feature_width"]
    with structure_only():
        method = build_method(
            preset.method, preset.model, vocabulary=vocabulary, feature_width=width
        )
    load_weights(folder / WEIGHTS, method, preset.method)
    method.precision = preset.training.precision
    return method.eval(), preset, vocabulary


def check_files(folder: Path) -> dict[str, Any]:
    """Compare the files of the model in `folder` with their hashes in `model.json`, and return the
    content of `model.json`.

    Raises:
        CheckpointError: a file is missing or damaged, or `model.json` has another content.
    """
    content = facts(folder)
    for name, key in HASHES.items():
        if not has_sha256(folder / name, content[key]):
            raise CheckpointError(
                f"{folder / name}: damaged or edited: its SHA-256 is not '{key}' of {FACTS}. "
                f"{REMEDY}"
            )
    return content


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
        with regular_path(path) as name, safe_open(name, framework="pt") as file:
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
