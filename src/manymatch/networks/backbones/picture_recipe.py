"""From a picture to the pixels of a model of transformers, as `preprocessor_config.json` says.

The pixels equal those of transformers' classes for Pillow bit for bit: the whole picture is resized
to a square, or to a shorter side. The middle square is then cut out without another resizing.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import TypeAdapter, ValidationError

from manymatch.networks.backbones.hub_model import PROCESSORS, read_bounded
from manymatch.util.errors import ConfigError, DataError
from manymatch.util.images import MAX_PIXELS

BILINEAR, _BICUBIC = Image.Resampling.BILINEAR, Image.Resampling.BICUBIC
_KINDS: dict[str, tuple[Image.Resampling, bool, bool]] = {
    "Beit": (_BICUBIC, False, True),
    "Bit": (_BICUBIC, True, False),
    "Blip": (_BICUBIC, False, True),
    "CLIP": (_BICUBIC, True, False),
    "ChineseCLIP": (_BICUBIC, True, False),
    "ConvNext": (_BICUBIC, False, False),
    "DINOv3ViT": (BILINEAR, False, True),
    "DeiT": (_BICUBIC, True, True),
    "MobileNetV1": (BILINEAR, True, False),
    "MobileNetV2": (BILINEAR, True, False),
    "Pvt": (_BICUBIC, False, True),
    "Siglip": (_BICUBIC, False, True),
    "ViT": (BILINEAR, False, True),
}
"""Processor -> the defaults of its class: the filter, whether it crops, and whether a `size` that
is one number means a square."""
_ENDING = re.compile(r"(ImageProcessor(Fast|Pil)?|FeatureExtractor)$")
_WARPED = 384
"""From this side on, ConvNeXt's processor squashes pictures instead of cropping them."""
LARGEST = 2048
"""Limit of a side in pixels."""


@dataclass(frozen=True)
class Scaling:
    """The filter for resizing; the network sees (pixels * factor - mean) / std."""

    resample: Image.Resampling
    factor: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raises a `ValueError` that says what is wrong."""
        if len(self.mean) != 3 or len(self.std) != 3 or min(self.std) <= 0 or self.factor <= 0:
            raise ValueError(
                "expected three numbers in image_mean and image_std, above 0 in image_std"
            )

    def described(self, size: str) -> str:
        """The recipe as one line; `size`: the sides of the pixels."""
        scaling = f"(x * {self.factor:.6g} - {self.mean}) / {self.std}"
        return f"RGB, {size}, {scaling}"


@dataclass(frozen=True)
class Recipe(Scaling):
    """How a picture becomes the pixels (side, side, 3) of the network.

    Attributes:
        resized: the side of the square, or the shorter side, to which the picture is resized.
        squashed: whether `resized` is the side of a square.
        side: the side of the middle square that is cut out.
    """

    resized: int
    squashed: bool
    side: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.side <= self.resized <= LARGEST:
            raise ValueError(
                f"pictures are resized to {self.resized} and cropped to {self.side} pixels, which "
                f"must not be larger, and at most {LARGEST}"
            )

    @classmethod
    def described_by(cls, content: Any, where: str) -> "Recipe":
        """The recipe by its `description`, or the JSON of it, in the file `where`.

        Raises:
            ConfigError: the content is not a recipe.
        """
        try:
            adapter = TypeAdapter(cls)
            text = isinstance(content, str)
            return adapter.validate_json(content) if text else adapter.validate_python(content)
        except ValidationError as error:
            raise ConfigError(
                f"{where}: no recipe of pixels ({error.errors()[0]['msg']}). Train the model again"
            ) from None

    def description(self) -> dict[str, Any]:
        """The recipe as JSON."""
        return asdict(self) | {"resample": int(self.resample)}

    def __str__(self) -> str:
        resized = (
            f"squashed to {self.resized} x {self.resized}"
            if self.squashed
            else f"shorter side {self.resized}"
        )
        crop = "" if self.squashed and self.resized == self.side else f", middle square {self.side}"
        return self.described(f"{resized} {self.resample.name.lower()}{crop}")

    def pixels(self, image: Image.Image, name: str) -> tuple[NDArray[np.uint8], NDArray[Any]]:
        """The pixels (side, side, 3), and their box (4,) in the picture, x1 y1 x2 y2 in 0..1.

        Args:
            image: an upright RGB picture.
            name: the picture's name, for messages.

        Raises:
            DataError: the resized picture would be too large, because it is very long.
        """
        width = height = self.resized
        if not self.squashed:
            longer = int(self.resized * max(image.size) / min(image.size))
            width, height = (
                (self.resized, longer) if image.width <= image.height else (longer, self.resized)
            )
        if width * height > MAX_PIXELS:
            size = f"{image.width} x {image.height} pixels"
            raise DataError(f"{name}: {size} are too long a strip. Remove the picture")
        resized = np.asarray(image.resize((width, height), self.resample))
        left, top = (width - self.side) // 2, (height - self.side) // 2
        cut = resized[top : top + self.side, left : left + self.side]
        corners = np.array([left, top, left + self.side, top + self.side], np.float32)
        return cut, corners / np.array([width, height, width, height], np.float32)


def placed(boxes: NDArray[np.float32], square: NDArray[np.float32]) -> NDArray[np.float32]:
    """Boxes (k, 4) in a `square` (4,) of a picture as boxes in the picture, all in 0..1."""
    start, end = square[:2], square[2:]
    return boxes * np.tile(end - start, 2) + np.tile(start, 2)


AnyRecipe = TypeVar("AnyRecipe", bound=Scaling)


def read_recipe(folder: Path, size: int | None, geometry: str | None) -> Recipe:
    """The recipe in the folder of a model.

    Args:
        size: the side of the network's pixels instead of the model's own.
        geometry: "squash" to squash the whole picture instead of cropping it.

    Raises:
        ConfigError: the recipe is missing, or pictures cannot be prepared as it says.
    """
    return read_processor(folder, lambda content: _recipe(content, size, geometry))


def read_processor(folder: Path, read: Callable[[dict[str, Any]], AnyRecipe]) -> AnyRecipe:
    """What `read` makes of the settings of the image processor in `folder`.

    Raises:
        ConfigError: the settings are missing or damaged, or `read` raises a `ValueError`,
            `TypeError` or `KeyError`, which says what is wrong.
    """
    path = next((folder / name for name in PROCESSORS if (folder / name).is_file()), None)
    if path is None:
        raise ConfigError(
            f"{folder}: no {PROCESSORS[0]}, which says how pictures become pixels. Add the file"
        )
    content = read_bounded(path)
    if path.name == PROCESSORS[1]:
        content = content.get("image_processor")  # type: ignore[assignment]
    try:
        if not isinstance(content, dict):
            raise ValueError("no image processor")
        return read(content)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        fault = f"no '{error.args[0]}'" if isinstance(error, KeyError) else str(error)
        raise ConfigError(f"{path}: {fault}. Name another model, or correct the file") from None


def processor_kind(content: dict[str, Any], kinds: Collection[str]) -> str:
    """The processor's name without its ending, one of `kinds`."""
    named = content.get("image_processor_type") or content.get("feature_extractor_type")
    kind = _ENDING.sub("", str(named))
    if kind not in kinds:
        raise ValueError(f"the image processor {named!r:.80} is none of {', '.join(kinds)}")
    return kind


def _recipe(content: dict[str, Any], size: int | None, geometry: str | None) -> Recipe:
    """Raises a `ValueError`, `TypeError` or `KeyError` that says what is wrong."""
    kind = processor_kind(content, _KINDS)
    resample, crops, is_square = _KINDS[kind]
    scaling = read_scaling(content, resample)
    resized, squashed = _sides(content["size"], is_square)
    side = resized
    if kind == "ConvNext":
        side = resized = size or resized
        squashed = squashed or side >= _WARPED
        crop_pct = content.get("crop_pct")
        resized = side if squashed else int(side / _number(crop_pct or 224 / 256, "crop_pct"))
    elif content.get("do_center_crop", crops):
        side, _ = _sides(content["crop_size"], is_square=True)
    elif not squashed and geometry is None:
        raise ValueError(
            "pictures keep their shape, but features need pictures of one shape. Set geometry: "
            "squash in the extraction"
        )
    if size and side != size:
        resized, side = round(resized * size / side), size
    if geometry == "squash":
        resized, squashed = side, True
    return Recipe(*scaling, resized, squashed, side)


def read_scaling(
    content: dict[str, Any], resample: Image.Resampling
) -> tuple[Image.Resampling, float, tuple[float, ...], tuple[float, ...]]:
    """The values of `Scaling`; `resample` is the processor's default."""
    if not content.get("do_resize", True):
        raise ValueError("do_resize is false, but pictures have different sizes")
    resample = Image.Resampling(content.get("resample") or resample)
    factor, mean, std = 1.0, [0.0] * 3, [1.0] * 3
    if content.get("do_rescale", True):
        factor = _number(content.get("rescale_factor", 1 / 255), "rescale_factor")
    if content.get("do_normalize", True):
        mean, std = content["image_mean"], content["image_std"]
    mean, std = (
        [_number(value, key) for value in values]
        for key, values in (("image_mean", mean), ("image_std", std))
    )
    return resample, factor, tuple(mean), tuple(std)


def _sides(value: Any, is_square: bool) -> tuple[int, bool]:
    """A side in pixels, and whether it is that of a square or the shorter one."""
    if isinstance(value, dict):
        given = {key: side for key, side in value.items() if side is not None}
        if given.keys() == {"height", "width"} and given["height"] == given["width"]:
            value, is_square = given["height"], True
        elif given.keys() == {"shortest_edge"}:
            value, is_square = given["shortest_edge"], False
    if not isinstance(value, int) or not 1 <= value <= LARGEST:
        raise ValueError(f"the size {str(value)[:80]} is neither a square nor a shorter side")
    return value, is_square


def _number(value: Any, key: str) -> float:
    if not isinstance(value, int | float) or not np.isfinite(value):
        raise ValueError(f"{key}: {str(value)[:80]!r} is not a number")
    return float(value)
