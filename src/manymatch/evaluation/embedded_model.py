"""A trained model with its embeddings of a split, and where its results come from."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from manymatch import __version__
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.galleries import is_whole
from manymatch.config.preset import Preset, Setting
from manymatch.evaluation.protocols import protocol_modules
from manymatch.methods import entry_point, method_class
from manymatch.methods.shared.method import Method
from manymatch.model.checkpoint import WEIGHTS_HASH, load_model
from manymatch.model.embed import Embedded, embed
from manymatch.model.facts import facts
from manymatch.shards.index import NAME as INDEX
from manymatch.shards.index import Index, read_index
from manymatch.shards.read import batches
from manymatch.util import files
from manymatch.util.code_hash import code_hash
from manymatch.util.errors import CheckpointError
from manymatch.util.progress import track

_IMAGES_PER_BATCH = 64


@dataclass(frozen=True)
class EmbeddedModel:
    """The model in `folder` with its embeddings of one split of `shards`."""

    folder: Path
    shards: Path
    method: Method
    preset: Preset
    vocabulary: AnyVocabulary
    index: Index
    embedded: Embedded

    def origin(self, stage: str) -> dict[str, Any]:
        """The model, the data and the code of this model's results, for the provenance file. All of
        it is the same on every machine; what differs from run to run is in `results.machine`.

        `data_sha256` is the hash of the shards' seal, which holds the hash of every shard.
        `warm_start_sha256` is the hash of the model that training started from, None if there is
        none. `resolved` is the preset, and `defaults` are the method's settings where a preset is
        silent. `code_sha256` is the hash of the code that `stage`, the module that ranks, the
        method and the protocols can reach.
        """
        preset, trained = self.preset, facts(self.folder)
        return {
            "method": preset.method,
            "preset": self.folder.name,
            "seed": preset.seed,
            "features": preset.features,
            "setting": setting_of(preset, self.index),
            "resolved": _empty_lists_as_null(preset.model_dump(mode="json")),
            "defaults": _empty_lists_as_null(
                method_class(preset.method).Settings.model_construct().model_dump(mode="json")
            ),
            # `load_model` has compared this hash with the file.
            "checkpoint_sha256": trained[WEIGHTS_HASH],
            "warm_start_sha256": trained.get("warm_start_sha256"),
            "data_sha256": files.sha256(self.shards / INDEX),
            "code_sha256": code_hash(stage, entry_point(preset.method), *protocol_modules()),
            "version": __version__,
            "parameters": sum(parameter.numel() for parameter in self.method.parameters()),
        }


def embed_split(folder: Path, shards: Path, split: str, device: torch.device) -> EmbeddedModel:
    """Load the model in `folder` and embed a split on `device`.

    Raises:
        CheckpointError: the model was not trained on the features that the shards hold.
        DataError: the shards cannot be used.
    """
    method, preset, vocabulary = load_model(folder)
    index = read_index(shards)
    width = facts(folder)["feature_width"]
    if (preset.features, width) != (index.features, index.width):
        raise CheckpointError(
            f"{folder}: trained on '{preset.features}' features of width {width}, but the shards "
            f"hold '{index.features}' of width {index.width}. Evaluate the model on shards with "
            "the features of its training, or train it again."
        )
    stream = batches(shards, split, vocabulary, _IMAGES_PER_BATCH, graphs=method.read_graph)
    embedded = embed(
        method.to(device), track(stream, f"embed {split} (batches)", len(stream)), device
    )
    return EmbeddedModel(folder, shards, method, preset, vocabulary, index, embedded)


def _empty_lists_as_null(value: Any) -> Any:
    """`value` with null for every empty list: the provenance is one of DVC's plots, because DVC
    keeps the runs of such stages, and DVC's plots fail at empty lists."""
    if isinstance(value, dict):
        return {key: _empty_lists_as_null(item) for key, item in value.items()}
    return None if value == [] else value


def setting_of(preset: Preset, index: Index) -> Setting:
    """`reproduced` only if the preset says so and the data are the paper's, all of them."""
    images = {name: split.images for name, split in index.splits.items()}
    return preset.setting if is_whole(index.dataset, images) else "small-scale"
