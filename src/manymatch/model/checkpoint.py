"""A trained model as a folder of safetensors and JSON: writing and reading.

model.safetensors  the weights, and the name of their method
preset.json        the resolved preset
vocabulary.json    the words or wordpieces, in the order of their ids
model.json         feature width, the hashes of the other files, and the epoch of the weights:
                   `model.facts`
README.md          the model card, which may be edited
SEAL.json          the seal of all files but the card
"""

import hashlib
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from manymatch.batch.wordpieces import AnyVocabulary, load_vocabulary
from manymatch.config.preset import Preset
from manymatch.config.strict import validate
from manymatch.methods import build_method, method_class
from manymatch.methods.shared.method import Method
from manymatch.model.facts import FACTS, REMEDY, facts
from manymatch.networks.encoders.hub_image import described_backbone
from manymatch.networks.encoders.pixels import structure_only
from manymatch.networks.layers.lora import merge_lora
from manymatch.util.errors import CheckpointError, DataError, StorageError, first_line
from manymatch.util.files import replacing, sha256, write_json, write_text
from manymatch.util.json_file import read_object
from manymatch.util.regular_file import regular_path
from manymatch.util.seal import NAME as SEAL
from manymatch.util.seal import open_sealed, sealed

WEIGHTS, PRESET, VOCABULARY = "model.safetensors", "preset.json", "vocabulary.json"
CARD = "README.md"
FILES = [WEIGHTS, PRESET, VOCABULARY, FACTS, CARD, SEAL]
"""All files of a model."""
TRAINED_IN = "trained_in"
"""The key of `model.json` for the precision of the training, as the preset names precisions."""
_MOST_BYTES = 2**20
"""The largest size of the file of a preset."""
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
    with sealed(folder, loose=[CARD]) as partial:
        partial.mkdir()
        save_weights(partial / WEIGHTS, method.state_dict(), preset.method)
        write_json(partial / PRESET, preset.model_dump(mode="json"))
        vocabulary.save(partial / VOCABULARY)
        content = {
            "method": preset.method,
            "feature_width": feature_width,
            **{key: sha256(partial / name) for name, key in HASHES.items()},
            **described_backbone(method),
        } | more
        write_json(partial / FACTS, content)
        write_text(partial / CARD, _model_card(preset, content))


def save_weights(path: Path, weights: Mapping[str, Tensor], name: str) -> str:
    """Write the state of a method as safetensors, with the method's `name`. Return the SHA-256 of
    the file."""
    # Safetensors refuses tensors that share memory, such as tied weights, and tensors in an unusual
    # memory format, such as a CNN's; clones are neither.
    plain = torch.contiguous_format
    state = {key: value.detach().cpu().clone(memory_format=plain) for key, value in weights.items()}
    content = save(state, metadata={"method": name})
    with replacing(path) as partial:
        partial.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def copy_model(source: Path, folder: Path, half: bool) -> None:
    """Copy the model in `source` to the new folder `folder`, with `half` in float16.

    Raises:
        StorageError: the folder exists, or cannot be written.
        CheckpointError: a file of `source` is damaged, or a weight is too large for float16.
    """
    if folder.exists():
        raise StorageError(f"{folder}: exists already. Name a new folder for the model.")
    if not half:
        with replacing(folder) as partial:
            shutil.copytree(source, partial)
        return
    content = check_files(source)
    weights, name = read_weights(source / WEIGHTS)
    halves = {
        key: value.half() if value.is_floating_point() else value for key, value in weights.items()
    }
    for key, value in halves.items():
        if not value.isfinite().all():
            raise CheckpointError(
                f"{source / WEIGHTS}: '{key}' has values that are too large for float16. Save the "
                "model in full precision."
            )
    with sealed(folder, loose=[CARD]) as partial:
        partial.mkdir()
        for other in (PRESET, VOCABULARY, CARD):
            if (source / other).is_file():  # a card may be missing
                shutil.copyfile(source / other, partial / other)
        content[WEIGHTS_HASH] = save_weights(partial / WEIGHTS, halves, str(name))
        write_json(partial / FACTS, content)


def load_model(folder: Path) -> tuple[Method, Preset, AnyVocabulary]:
    """The trained method (on the CPU, in evaluation mode), its preset and its vocabulary.

    Raises:
        CheckpointError: a file is missing or damaged, or the weights do not fit the preset.
    """
    for name in (WEIGHTS, PRESET, VOCABULARY, FACTS):
        if not (folder / name).is_file():
            raise CheckpointError(
                f"{folder}: not a trained model, because {name} is missing. Run 'train' first. "
                "docs/backbones.md says how to search with a model of transformers, such as CLIP."
            )
    content = check_files(folder)
    preset = validate(Preset, read_object(folder / PRESET, _MOST_BYTES), str(folder / PRESET))
    vocabulary = load_vocabulary(folder / VOCABULARY)
    data: dict[str, Any] = {"vocabulary": vocabulary, "feature_width": content["feature_width"]}
    build = partial(build_method, preset.method, preset.model, **data)
    state, stored = read_weights(folder / WEIGHTS)
    with structure_only(content):
        try:
            # A preset from elsewhere may have sizes that no memory holds.
            with torch.device("meta"):
                expected = build().state_dict()
        except RuntimeError as error:
            raise CheckpointError(
                f"{folder / PRESET}: a network that cannot be built ({first_line(error)}). {REMEDY}"
            ) from None
        _check_fit(folder / WEIGHTS, state, stored, expected, preset.method)
        method = build()
    method.load_state_dict(state)
    merge_lora(method)
    method.precision = preset.training.precision
    return method.eval(), preset, vocabulary


def check_files(folder: Path) -> dict[str, Any]:
    """Compare the files of the model in `folder` with its seal, and return the content of
    `model.json`.

    Raises:
        CheckpointError: a file is missing or damaged, or `model.json` has another content.
    """
    content = facts(folder)
    try:
        seal = open_sealed(folder, REMEDY, whole_bytes=None)
        for name, key in HASHES.items():
            seal.check(name)
            if seal.hashes[name] != content[key]:
                raise DataError(f"{folder / name}: its SHA-256 is not '{key}' of {FACTS}. {REMEDY}")
    except DataError as error:
        raise CheckpointError(str(error)) from None
    return content


def load_weights(path: Path, method: Method, name: str) -> None:
    """Load all weights of the method `name` into `method`.

    Raises:
        CheckpointError: the file is unreadable, or its weights do not fit `method`.
    """
    state, stored_name = read_weights(path)
    _check_fit(path, state, stored_name, method.state_dict(), name)
    method.load_state_dict(state)


def read_weights(path: Path) -> tuple[dict[str, Tensor], str | None]:
    """The weights by name, and the name of their method as the file states it."""
    try:
        with regular_path(path) as name, safe_open(name, framework="pt") as file:
            weights = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  no mapping
            return weights, (file.metadata() or {}).get("method")
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: not readable as safetensors ({error})") from None


def _check_fit(
    path: Path,
    stored: Mapping[str, Tensor],
    stored_name: str | None,
    expected: Mapping[str, Tensor],
    name: str,
) -> None:
    """Refuse weights of another method than `name`, and weights of other names or shapes."""
    if stored_name not in (name, None):
        raise CheckpointError(
            f"{path}: weights of the method '{stored_name}', but the preset is of '{name}'. "
            "Set the folder that was trained by this preset."
        )
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


_CARD = """\
---
library_name: manymatch
pipeline_tag: text-to-image
tags: [image-text-retrieval, {method}]
---

# {method} on {dataset}

An image-text retrieval model, trained with ManyMatch. The model ranks pictures by a text and texts
by a picture.

    import manymatch

    model = manymatch.load("FOLDER")
    images = model.encode_images(["a.jpg", "b.png"])
    texts = model.encode_texts(["a red bird above a table"])
    model.score(images, texts)

## Training

- Method: {method}. All settings are in `preset.json`.
- Data: the training split of {dataset}.
- Image features: {features} ({preprocessing}).
- Scene graphs: {parser}.
- Validation split: rsum {rsum} of 600, {epoch}. Setting: {setting}.

## Limits

- The model knows the words and the kinds of pictures of its training data, and no others.
- A score says which picture fits a text better. A score is not a probability.
- The data set's captions may hold stereotypes about people, and the model learns them.
- Do not use the model to identify people or to decide about them.

## Licence

The code is under Apache-2.0. The terms of the data set and of the pretrained networks apply to the
weights as well.
"""


def _model_card(preset: Preset, facts: Mapping[str, Any]) -> str:
    """The text of the card. What the `facts` of `model.json` lack is called "unknown"."""
    rsum = facts.get("rsum")
    return _CARD.format(
        method=preset.method,
        dataset=facts.get("dataset", "unknown"),
        features=preset.features,
        preprocessing=facts.get("extraction", {}).get("preprocessing", "unknown"),
        parser=facts.get("parser") or "not used",
        rsum="unknown" if rsum is None else f"{rsum:.1f}",
        epoch=f"epoch {facts.get('epoch', 'unknown')} of {facts.get('epochs', 'unknown')}"
        if method_class(preset.method).learns
        else "as published, without training",
        setting=preset.setting,
    )
