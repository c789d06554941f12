"""The stage `train`: one preset makes one model."""

import copy
from functools import partial
from pathlib import Path

from manymatch.batch.pieces import Pieces
from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import AnyVocabulary
from manymatch.config.preset import Preset
from manymatch.methods import build_method, check_read, method_class, vocabulary_of
from manymatch.methods.shared.method import Method
from manymatch.model.checkpoint import TRAINED_IN, save_model
from manymatch.networks.device import tf32
from manymatch.networks.encoders.hub_image import HubImageEncoder
from manymatch.networks.encoders.pixels import PixelNetwork
from manymatch.results.machine import Clock, record
from manymatch.shards.read import Index, caption_texts, image_ids, read_index
from manymatch.training.checkpoints import RSUM, Checkpoints, fingerprint
from manymatch.training.curves import Curves
from manymatch.training.data import Data, ValidationBatches
from manymatch.training.helpers import first_process, helped
from manymatch.training.loop import AfterEpoch, fit, reseed
from manymatch.training.machine import choose_machine, description
from manymatch.training.run_context import deterministic, end_with_torchrun, memory_faults, quiet
from manymatch.training.true_pairs import TruePairs
from manymatch.training.validation import precision_by_score, validate
from manymatch.training.warm_start import Source, find_source
from manymatch.util.errors import ConfigError, DataError
from manymatch.util.files import sha256
from manymatch.util.progress import say


def train(
    preset: Preset,
    shards: Path,
    vocabulary: Path,
    model: Path,
    curves: Path,
    checkpoints: Path,
    models: Path = Path("models"),
    usage: Path | None = None,
    end_of_epoch: AfterEpoch | None = None,
    relevance: Path | None = None,
) -> None:
    """Train by `preset` and write the folder `model` with the weights of the best epoch.

    A killed run resumes from its last checkpoint. On the CPU its result is bit-identical to the
    result without a kill. With several devices every process runs this function (`helpers`); the
    first one writes.

    Args:
        shards: a folder of shards with the splits `train` and `validation`.
        vocabulary: the file of the training captions' words.
        curves: folder for the curves of the training.
        checkpoints: folder of the files from which a killed run resumes; removed at the end.
        models: the folder of the preset's `warm_start.model`.
        usage: file for the time and memory of the training (`results.machine`); None: no file.
        end_of_epoch: see `AfterEpoch`.
        relevance: the data set's judgments, for the shares of right results at scores, and for
            `training.negatives: oracle`.

    Raises:
        ConfigError, DataError: preset and data do not fit, or training diverges.
        DeviceMemoryError: a batch needs more memory than the device has.
        CheckpointError: the model of the warm start is missing or does not fit.
        ManyMatchError: another process of the training was killed.
    """
    end_with_torchrun()
    clock = Clock()
    index, machine = _checked_index(preset, shards), choose_machine(preset.training)
    words = vocabulary_of(
        preset.method, preset.model, Vocabulary.load(vocabulary), caption_texts(shards)
    )
    if first_process() and isinstance(words, Pieces):
        _say_cut_captions(words, shards)
    data = Data(shards, words, _true_pairs(preset, shards, relevance))
    source = find_source(preset, models)
    if source and source.folder.resolve() == model.resolve():
        raise ConfigError(
            f"warm_start.model: {model} would be the start and the result, and each run would give "
            "another model. Call the result otherwise (--as NAME), or start from another model"
        )
    start = source.sha256 if source else ""
    inputs = fingerprint(preset, shards, vocabulary, repr(machine), start)
    if data.true_pairs and relevance:
        inputs["relevance"] = sha256(relevance)
    store = Checkpoints(checkpoints, inputs, preset.method, preset.training.checkpoint_every)
    history, fault = store.find()
    resumed = bool(history.rows)
    first = first_process()
    if first and resumed:
        cause = f", because {store.folder}: {fault}" if fault else ""
        say(f"resuming after epoch {len(history.rows)}{cause}")
    elif first and fault:
        say(f"{store.folder} is ignored and training starts anew: {fault}")
    method = _method(preset, words, index, source)
    method.check_features(index.attributes)
    method.precision = machine.precision  # validation embeds as training does
    if first:
        say(description(preset.training, machine))
    same_shapes = any(isinstance(part, PixelNetwork) for part in method.modules())
    with (
        quiet(),
        deterministic(preset.training, machine.first_device, same_shapes),
        tf32(machine.tf32),
        Curves(curves, history, preset.training.logger) as live,
    ):
        if not method.learns:
            batches = ValidationBatches(data, preset.training.images_per_batch, method.read_graph)
            recalls = validate(method.to(machine.first_device), batches, machine.first_device)
            history.rows.append({f"validation/{name}": value for name, value in recalls.items()})
            live.add()
        # A run that was killed between the last epoch and the model is already trained.
        elif not history.ended(preset.training.epochs, preset.training.patience):
            places = shards, vocabulary, model, curves, checkpoints, models
            help_here = partial(
                train, preset, *places, end_of_epoch=end_of_epoch, relevance=relevance
            )
            trained = copy.deepcopy(method) if machine.sharded else method
            with memory_faults(), helped(machine.devices, help_here), store:
                fit(trained, preset, data, machine, history, store, live, end_of_epoch)
    if not first:
        return
    best, device = history.best, machine.first_device
    rsum = history.rows[best][RSUM]
    if method.learns:
        store.load_best(method, best)
    method.precision = preset.training.precision  # searches embed as the preset says
    with deterministic(preset.training, device):
        precision = precision_by_score(
            method.to(device), data, preset.training.images_per_batch, device, relevance
        )
    facts = {
        "dataset": index.dataset,
        "extraction": index.attributes,
        "parser": index.parser,
        **({"epoch": best + 1, "epochs": len(history.rows)} if method.learns else {}),
        "rsum": rsum,
        TRAINED_IN: machine.precision if method.learns else "32-true",
        **precision,
        **({"warm_start_sha256": start} if source else {}),
    }
    save_model(model, method, preset, words, index.width, **facts)
    store.remove()
    epoch = f"epoch {best + 1} of {len(history.rows)}" if method.learns else "as published"
    say(f"{model}: {epoch}, validation rsum {rsum:.1f}")
    if usage is not None:
        record(usage, "train", clock.usage(str(device), resumed))


def _true_pairs(preset: Preset, shards: Path, relevance: Path | None) -> TruePairs | None:
    if preset.training.negatives == "batch" or not method_class(preset.method).learns:
        return None
    if relevance is None:
        raise ConfigError(
            "training.negatives: oracle: there is no relevance table. Run the stage 'captions'."
        )
    return TruePairs(relevance, image_ids(shards, "train"))


def _say_cut_captions(pieces: Pieces, shards: Path) -> None:
    cut = [pieces.is_cut(text) for text in caption_texts(shards)]
    if any(cut):
        say(
            f"{sum(cut):,} of {len(cut):,} captions are cut: the text model reads at most "
            f"{pieces.special.length} pieces"
        )


_TOO_FEW = {
    "train": "A training needs two, because captions of other images are the negatives",
    "validation": "Validation needs two, because a single image is always found, after any epoch",
}
"""Why a split has at least two images."""


def _checked_index(preset: Preset, shards: Path) -> Index:
    index = read_index(shards)
    if index.features != preset.features:
        raise ConfigError(
            f"features: the preset is for '{preset.features}', but {shards} holds "
            f"'{index.features}'. Run 'manymatch shards {index.dataset} {preset.features}'."
        )
    for split, reason in _TOO_FEW.items():
        if index.split(split).images < 2 and method_class(preset.method).learns:
            raise DataError(
                f"{shards}: one image in the split '{split}'. {reason}. Give the split more images."
            )
    if index.dtype == "uint8" and preset.augmentation.region_drop:
        raise ConfigError(
            f"augmentation.region_drop: '{index.features}' are pixels without regions. Set it to 0."
        )
    check_read(preset)
    return index


def _method(
    preset: Preset, vocabulary: AnyVocabulary, index: Index, source: Source | None
) -> Method:
    """The method with the weights with which training begins."""
    reseed(preset.seed, 0, 0)
    method = build_method(
        preset.method, preset.model, vocabulary=vocabulary, feature_width=index.width
    )
    networks = [part for part in method.modules() if isinstance(part, PixelNetwork)]
    if index.dtype == "uint8" and not networks:
        raise ConfigError(
            f"'{index.features}' are pixels, which only a CNN or a backbone can read. Give the "
            "preset's images a cnn or a backbone, or set other features."
        )
    for network in networks:
        if isinstance(network, HubImageEncoder):
            network.check_pixels(index.attributes.get("preprocessing"))
    if source is not None:
        source.load(method, vocabulary)
    return method
