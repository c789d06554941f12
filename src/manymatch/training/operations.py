"""The floating point operations of a training, counted before it begins, and the hours of a GPU."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from manymatch.batch.batch import Batch
from manymatch.batch.collate import collate, whole_item
from manymatch.batch.numbering import NumberedCaption, NumberedGraph
from manymatch.batch.padding import all_real
from manymatch.batch.vocabulary import Vocabulary
from manymatch.batch.wordpieces import NETWORK, SPECIAL, AnyVocabulary, WordPieces
from manymatch.config.preset import Preset
from manymatch.losses.pseudo_labels import Queue
from manymatch.methods import check_model, method_class
from manymatch.methods.shared.method import Method
from manymatch.networks.backbones.hub_model import CONFIG, checked_config
from manymatch.networks.backbones.picture_recipe import read_recipe
from manymatch.networks.backbones.text_model import hub_pieces
from manymatch.networks.encoders.bert_weights import PACKAGES, bert_folder
from manymatch.networks.encoders.cnn import CNNSettings
from manymatch.networks.encoders.pixels import structure_only
from manymatch.training.gather import encoded
from manymatch.training.gpu_memory import folder_here, pixel_settings
from manymatch.training.optimizer import make_optimizer, thaw
from manymatch.util.errors import ConfigError, DataError, first_line

WORDS = 12
"""The words of each caption that is counted: the mean of Flickr30K's."""
GPU, PEAK, SHARE = "A100", 312e12, 0.2
"""A GPU, its operations a second in bfloat16 (NVIDIA's data sheet), and the share of them that a
training reaches."""
_BERT = "bert-base-uncased"
_META = torch.device("meta")


def multiply_adds(compute: Callable[[], object]) -> int:
    """Multiply-adds of the matrix products and convolutions in `compute()`: what the papers call
    FLOPs.

    Elementwise operations are left out, as in the papers (DivE, section 4.4: K K D).
    """
    with FlopCounterMode(display=False) as counter:
        compute()
    return counter.get_total_flops() // 2


@dataclass(frozen=True)
class Operations:
    """The floating point operations of a training of `epochs` epochs of `steps` steps."""

    total: float
    epochs: int
    steps: int

    @property
    def hours(self) -> float:
        """The hours of the GPU `GPU` at the share `SHARE` of its `PEAK`."""
        return self.total / (SHARE * PEAK) / 3600


def training_operations(
    preset: Preset, images: int, captions: int, shape: tuple[int, int] | None
) -> Operations:
    """The operations of the whole training, forward and backward; two for a multiply-add.

    Nothing is computed: the tensors have shapes alone. No data, no weights and no network are
    needed. What freezes and thaws learns in its epochs alone. Left out are elementwise operations,
    the optimiser, the validation, and the padding of captions.

    `images` and `captions` are those of the training split. `shape` is R and F, the regions of an
    image and the size of a region; None if these are not known and a network reads pixels. It is a
    `ConfigError` if the operations cannot be counted.
    """
    training = preset.training
    # As in `shards.read.batches`: an incomplete batch is left out, unless it is the only one.
    steps = max(1, max(2, round(training.fraction * images)) // training.images_per_batch)
    per_image = training.captions_per_image or max(1, round(captions / images))
    try:
        with _shapes_alone():
            phases = _phases(preset, per_image, shape)
    except (NotImplementedError, RuntimeError, DataError) as error:
        raise ConfigError(f"torch cannot run a step on shapes alone: {first_line(error)}") from None
    starts = [*(start for start, _ in phases), training.epochs]
    total = sum(
        2.0 * products * steps * (min(end, training.epochs) - min(start, training.epochs))
        for (start, end), (_, products) in zip(pairwise(starts), phases, strict=True)
    )
    return Operations(total, training.epochs, steps)


def _phases(preset: Preset, per_image: int, shape: tuple[int, int] | None) -> list[tuple[int, int]]:
    """The first epoch of each phase, between which parameters freeze or thaw, and the multiply-adds
    of a step."""
    training = preset.training
    settings = check_model(preset.method, preset.model)
    side, facts = _pixels(settings)
    if side is None and shape is None:
        raise ConfigError(
            f"the size of the features '{preset.features}' is known after the stage 'shards'"
        )
    regions, width = shape if side is None and shape else ((side or 0) ** 2, 3)
    vocabulary = _vocabulary(settings)
    with structure_only(facts):
        method = method_class(preset.method)(settings, vocabulary, width)
    for queue in (part for part in method.modules() if isinstance(part, Queue)):
        queue.filled = torch.tensor(len(queue.rows), device="cpu")  # as in later steps
    optimizer = make_optimizer(method, training, fused=False)
    method.train()
    count = -(-training.images_per_batch // training.accumulate)
    features = torch.empty(count, regions, width, dtype=torch.uint8 if side else torch.float32)
    parts = (_batch(features, per_image),) * training.accumulate
    phases = []
    for epoch in sorted({0, *(group["from_epoch"] for group in optimizer.param_groups)}):
        thaw(optimizer, epoch)
        method.start_epoch(training.epochs)  # all losses at full weight
        method.start_step(training.epochs)
        phases.append((epoch, multiply_adds(lambda: _step(method, parts))))
    return phases


def _step(method: Method, parts: tuple[Batch, ...]) -> None:
    images, texts, image_index = encoded(method, parts)
    batch = replace(parts[0], image_index=image_index)
    terms = method.loss(images.float(), texts.float(), batch)
    torch.stack(list(terms.values())).sum().backward()


def _batch(features: Tensor, per_image: int) -> Batch:
    """The images `features (n, R, F)` with captions of `WORDS` words. Each caption has four
    objects, two attributes and two relations, whose phrases differ from those of other captions."""
    count, regions, _ = features.shape
    captions = []
    for start in range(1, 8 * per_image * count, 8):
        one, two, three, four, *others = ((start + phrase,) for phrase in range(8))
        graph = NumberedGraph(
            objects=[one, two, three, four],
            names=[1, 2, 3, 4],
            attributes=[(0, others[0], 1), (1, others[1], 2)],
            relations=[(0, others[2], 1), (2, others[3], 3)],
        )
        captions.append(NumberedCaption("", (start,) * WORDS, graph))
    items = [
        whole_item("", np.zeros((1, 1), np.float16), captions=captions[first : first + per_image])
        for first in range(0, len(captions), per_image)
    ]
    with torch.device("cpu"):
        batch = collate(items)
    return replace(
        batch.to(_META),
        features=features,
        region_padding=all_real(count, regions, _META),
        boxes=torch.empty(count, regions, 4),
    )


def _pixels(settings: Any) -> tuple[int | None, Mapping[str, Any]]:
    """The side of the pictures that a network of the method's settings reads, None without a
    network; and what a trained model says of the network, so that its weights are not loaded."""
    pixels = pixel_settings(settings)
    if pixels is None:
        return None, {}
    if isinstance(pixels, CNNSettings):
        return pixels.crop, {}
    folder = _folder(pixels.model)
    recipe = read_recipe(folder, pixels.size, pixels.geometry)
    facts = {"config": checked_config(folder), "recipe": recipe.description()}
    return recipe.side, {"backbone": facts}


def _vocabulary(settings: Any) -> AnyVocabulary:
    """A vocabulary for the text encoder of the settings, without the weights of the encoder."""
    groups: tuple[Any, ...] = (settings, getattr(settings, "text", None))
    for group in groups:
        if (hub := getattr(group, "hf", None)) is not None:
            pieces = hub_pieces(str(_folder(hub.model)))
            pieces.pretrained = None
            return pieces
        if "bert" in (getattr(group, "encoder", None), getattr(group, "concept_encoder", None)):
            return _wordpieces(group.bert.weights)
    return Vocabulary(Vocabulary.SPECIAL, trained=True)


def _wordpieces(weights: str) -> WordPieces:
    """Wordpieces that lead to the network of a BERT."""
    if weights == _BERT:
        from transformers import BertConfig

        config = BertConfig().to_dict()  # whose defaults are those of this BERT
    else:
        config = checked_config(bert_folder(weights) if weights in PACKAGES else _folder(weights))
    pieces = {piece: number for number, piece in enumerate((*SPECIAL, "a"))}
    tokenizer: str = Tokenizer(WordPiece(pieces, unk_token=SPECIAL[1])).to_str()
    return WordPieces(tokenizer, {key: config[key] for key in NETWORK if key in config})


def _folder(model: str) -> Path:
    folder = folder_here(model)
    if folder is None:
        raise ConfigError(f"{CONFIG} of {model} is on the hub, and not on this machine yet")
    return folder


class _Draws(TorchDispatchMode):
    """Gives draws of a Beta distribution, which torch cannot draw on shapes alone, their shape."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.ops.aten._sample_dirichlet.default:
            return torch.empty_like(args[0])
        return func(*args, **(kwargs or {}))


@contextmanager
def _shapes_alone() -> Iterator[None]:
    """In the block new tensors have a shape and no memory.

    Networks ask torch whether autocast rounds on their device. Torch refuses the question for the
    device `meta`, so the block answers it.
    """
    asked = torch.is_autocast_enabled

    def answer(*device: str) -> bool:
        return device != (_META.type,) and asked(*device)

    torch.is_autocast_enabled = answer  # type: ignore[assignment]
    try:
        with _META, _Draws():
            yield
    finally:
        torch.is_autocast_enabled = asked
