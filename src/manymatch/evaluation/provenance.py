"""Where a result comes from: the model, the data and the code. All of it is the same on every
machine; what differs from run to run is in `system.machine`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manymatch import __version__
from manymatch.config.galleries import is_whole
from manymatch.config.preset import Preset, Setting
from manymatch.methods import entry_point
from manymatch.methods.checkpoint import WEIGHTS_HASH, facts
from manymatch.shards.index import NAME as INDEX
from manymatch.shards.index import Index, read_index
from manymatch.system import files
from manymatch.system.code_hash import code_hash


def origin(model: Path, shards: Path, preset: Preset, stage: str) -> dict[str, Any]:
    """The model and the data of a result: settings, hashes and version.

    `data_sha256` is the hash of the shards' index, which holds the hash of every shard.
    `warm_start_sha256` is the hash of the model that training started from, None if there is none.
    `code_sha256` is the hash of the code that `stage` and the method can reach.

    Args:
        model: folder of the trained model; its name is the preset's.
        shards: folder of the shards that the model ranked.
        preset: the settings of the trained model.
        stage: the module that ranks, such as `manymatch.evaluation.evaluate`.
    """
    trained = facts(model)
    return {
        "method": preset.method,
        "preset": model.name,
        "seed": preset.seed,
        "features": preset.features,
        "setting": setting_of(preset, read_index(shards)),
        "resolved": _without_empty_lists(preset.model_dump(mode="json")),
        # `load_model` has compared this hash with the file.
        "checkpoint_sha256": trained[WEIGHTS_HASH],
        "warm_start_sha256": trained.get("warm_start_sha256"),
        "data_sha256": files.sha256(shards / INDEX),
        "code_sha256": code_hash(stage, entry_point(preset.method)),
        "version": __version__,
    }


def _without_empty_lists(value: Any) -> Any:
    """`value` with null for every empty list: the provenance is one of DVC's plots, because DVC
    keeps the runs of such stages, and DVC's plots fail at empty lists."""
    if isinstance(value, dict):
        return {key: _without_empty_lists(item) for key, item in value.items()}
    return None if value == [] else value


def setting_of(preset: Preset, index: Index) -> Setting:
    """`reproduced` only if the preset says so and the data are the paper's, all of them."""
    images = {name: split.images for name, split in index.splits.items()}
    return preset.setting if is_whole(index.dataset, images) else "small-scale"
