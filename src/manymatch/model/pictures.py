"""Pictures of any kind, with the image features that a trained model expects."""

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import nn

from manymatch.batch.collate import ImageItem, whole_item
from manymatch.config.params import Extraction
from manymatch.config.strict import validate
from manymatch.features import build_backbone, entry_point
from manymatch.features.backbone import Backbone, Detector, Sources
from manymatch.features.extractors import Detection, Extractor
from manymatch.features.image_list import Picture
from manymatch.features.pixels import ModelPixels
from manymatch.networks.backbones.picture_recipe import Recipe
from manymatch.networks.encoders.hub_image import HubImageEncoder
from manymatch.util.errors import CheckpointError, ConfigError, DataError
from manymatch.util.images import read_crops, read_image

AnyPicture = str | Path | Image.Image | NDArray[Any]
"""A file, a PIL image, or an array `(h, w, 3)` or `(h, w)` of bytes."""

_PICTURES_AT_ONCE = 32
_SETTINGS = ("model", "output", "grid", "layer", "size", "geometry")
_DETECTION = ("detector", "score", "nms", "regions")
"""The settings among the facts of an extraction. Those of a region's backbone have the prefix
"backbone."."""
_Item = TypeVar("_Item")


@dataclass
class PictureFeatures:
    """Extracts the image features of a trained model.

    Attributes:
        features: name of the features in the model's preset, such as `lite0`.
        extraction: backbone, preprocessing and hash of the weights, as the model's training saw
            them.
        weights, regions: as for `load`; the weights of kind regions are DETECTOR,BACKBONE, each of
            which may be left out.
    """

    features: str
    extraction: dict[str, str]
    device: torch.device
    weights: str | None
    regions: tuple[int, int]

    def items(self, images: Iterable[AnyPicture]) -> Iterator[ImageItem]:
        """The pictures as items of a batch without captions, in the given order.

        Raises:
            ConfigError: the features cannot be extracted here.
            DataError: a picture cannot be read.
        """
        extractor = self._extractor
        opened = (_opened(number, image) for number, image in enumerate(images))
        for picture, features, boxes in extractor.run(opened):
            if extractor.backbone.dtype == "float16":  # as feature stores hold them
                features = features.astype(np.float16)
            yield whole_item(picture.image_id, features, boxes)

    def boxes(
        self, image: AnyPicture, item: ImageItem, method: nn.Module
    ) -> NDArray[np.float32] | None:
        """The boxes `(R, 4)` of the local features of an image: those of its `item`, or the cells
        of the method's backbone, which reads pixels. None: they are not known."""
        pixels = self._extractor.backbone
        for part in method.modules():
            if isinstance(part, HubImageEncoder) and isinstance(pixels, ModelPixels):
                return pixels.cells(_opened(0, image), part.network.grid)
        return item.boxes

    def reader(self) -> Callable[[Path], Image.Image]:
        """A function that reads a file as the picture that the backbone sees, for several threads.

        Raises:
            ConfigError, CheckpointError: the features cannot be extracted here.
        """
        backbone = self._extractor.backbone
        if isinstance(backbone, Detector) or backbone.full_size:
            return lambda file: Image.fromarray(read_image(file))
        # The same crop of a picture of the backbone's size changes nothing.
        crops = backbone.crops("")
        return lambda file: Image.fromarray(read_crops(file, crops, backbone.size)[0])

    @cached_property
    def _extractor(self) -> Extractor | Detection:
        """The backbone of the training. Another backbone is an error."""
        trained = self.extraction
        name = trained.get("backbone", self.features)
        unknown = ConfigError(
            f"the model was trained on '{name}' features that others published, and nothing "
            "here extracts these from a picture. Train a model on features that are extracted "
            "here, such as lite0."
        )
        if trained.get("preprocessing", "").startswith("published"):
            raise unknown
        try:
            entry_point(name)
        except ConfigError:
            raise unknown from None
        if name == "objects":
            raise ConfigError(
                "the model was trained on 'objects' features, which need the boxes of a data set. "
                "Train a model on other features, such as lite0."
            )
        built: Backbone | Detector
        if name == "pixels":
            where = "model.json: extraction.recipe"
            built = ModelPixels(Recipe.described_by(trained.get("recipe"), where))
        else:
            checked = validate(Extraction, self._settings(name), "the model's features")
            built = build_backbone(name, Sources(Path(), checked))
        for fact in ("preprocessing", "weights_sha256"):
            if trained.get(fact) != getattr(built, fact):
                raise CheckpointError(
                    f"image features '{name}': {fact} is '{getattr(built, fact)}', but the model "
                    f"was trained with '{trained.get(fact)}'. Load the model with the weights and "
                    "the regions of its training."
                )
        if isinstance(built, Detector):
            return Detection(name, built, self.device)
        return Extractor(name, built, self.device, _PICTURES_AT_ONCE)

    def _settings(self, kind: str) -> dict[str, Any]:
        """The settings of the training, with other `weights`."""

        def given(start: str, keys: Iterable[str]) -> dict[str, Any]:
            facts = self.extraction
            return {key: facts[start + key] for key in keys if start + key in facts}

        settings = {"kind": kind} | given("", (*_SETTINGS, *_DETECTION))
        if kind == "hf" and self.weights is not None:
            settings["model"] = self.weights
        elif kind == "regions":
            inner = given("backbone.", ("kind", *_SETTINGS))
            detector, _, file = (self.weights or "").partition(",")
            if detector:
                settings["detector"] = detector
            if file:
                inner["model" if inner.get("kind") == "hf" else "weights"] = file
            settings["backbone"] = inner
        elif kind != "hf":
            settings |= {"weights": self.weights, "regions": self.regions}
        return settings


def refuse_single(items: Any) -> None:
    """Refuse a single item, because its letters or rows would count as items: a `DataError` for a
    text, a path, a PIL image, the array of one picture, and what is not a list."""
    shape = getattr(items, "shape", (0,))  # also of tensors, and of tables, which give their names
    if isinstance(items, Mapping | Set) or (not isinstance(items, Iterable) and shape == (0,)):
        raise DataError(f"expected several items in a list, not {type(items).__name__}")
    array = len(shape) != 1 and shape[2:] in ((), (3,))
    if array or isinstance(items, str | bytes | Path | Image.Image):
        raise DataError("expected several items, not a single one. Put the item in a list: [ITEM]")


def batches_of(items: Iterable[_Item], size: int, kind: type = object) -> Iterator[list[_Item]]:
    """The items in lists of `size`; the last list may be shorter.

    Raises:
        ConfigError: `size` is not an integer of at least 1.
        DataError: `items` is a single item, or an item is not of the class `kind`.
    """
    refuse_single(items)
    if not isinstance(size, Integral) or size < 1:
        raise ConfigError(f"batch_size = {size!r}: expected a number of at least 1.")
    iterator, most = iter(items), min(size, sys.maxsize)
    while batch := list(itertools.islice(iterator, most)):
        for item in batch:
            if not isinstance(item, kind):
                raise DataError(f"expected items of {kind.__name__}, not {type(item).__name__}")
        yield batch


def _opened(number: int, image: AnyPicture) -> Picture:
    """The image with its file, or its number as its id."""
    if isinstance(image, str | Path):
        return Picture(str(image), Path(image))
    if isinstance(image, Image.Image):
        return Picture(str(number), image)
    try:
        array = np.asarray(image)
    except ValueError:  # lists of unequal length, and what only seems to be a list
        raise DataError(f"image {number}: {type(image).__name__} instead of a picture") from None
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or array.shape[2:] not in ((), (3,)):
        raise DataError(
            f"image {number}: an array {array.dtype} {array.shape}. Expected bytes (uint8) of the "
            "shape (height, width, 3) or (height, width)."
        )
    return Picture(str(number), Image.fromarray(array))
