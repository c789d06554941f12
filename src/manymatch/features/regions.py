"""One vector for each object that a detector of transformers finds: `kind: regions`.

Region 0 is the whole picture. The next regions are the detected boxes, best first. A detector sees
one picture at a time, as a whole: pictures of different shapes in a batch would be padded, and a
convolution would change the features at their edges. So boxes do not depend on other pictures.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from manymatch.config.params import Extraction
from manymatch.features import build_backbone
from manymatch.features.backbone import WHOLE, Backbone, LocatingBackbone, Sources
from manymatch.features.butd.operations import suppress
from manymatch.features.image_list import Located, Picture
from manymatch.networks.backbones import picture_recipe
from manymatch.networks.backbones.hub_model import HubModel, open_model
from manymatch.networks.backbones.vision_model import Scaled
from manymatch.util.errors import ConfigError, first_line
from manymatch.util.images import read_image

_DETECTORS: dict[str, tuple[bool, int]] = {
    "ConditionalDetr": (False, 1),
    "DeformableDetr": (False, 1),
    "Detr": (True, 1),
    "RTDetr": (False, 1),
    "RfDetr": (False, 1),
    "Yolos": (True, 16),
}
"""Processor of a detector -> whether the last class is the background, and the number of which
sides are multiples where a picture keeps its shape."""
_SIDES = ("height", "width"), ("shortest_edge", "longest_edge"), ("max_height", "max_width")
"""The forms of a detector's size."""
_DETECTOR_SIZES = {"shortest_edge": 800, "longest_edge": 1333}, {"height": 640, "width": 640}
"""The default size of all detectors' processors but RT-DETR's, and of RT-DETR's."""
_MEAN, _STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
"""The defaults of detectors."""
_Prepared = tuple[Picture, Tensor, Tensor]
"""A picture, its pixels (1, 3, H, W) for the detector, and its width and height."""


def build(name: str, sources: Sources) -> "DetectedRegions":
    """Return the detector and the backbone that `sources.settings` name."""
    settings = sources.settings
    if settings.detector is None or settings.backbone is None:
        raise ConfigError("features of kind regions: no detector. Set 'detector' and 'backbone'")
    inner = settings.backbone
    if inner.kind == "hf":  # a crop must not lose its edges
        inner = inner.model_copy(update={"geometry": "squash"})
    built = build_backbone(str(inner.kind), Sources(sources.raw, inner))
    if not isinstance(built, Backbone) or built.network is None:
        raise ConfigError(f"features of kind regions: kind {inner.kind} describes no crops")
    return DetectedRegions(open_model(settings.detector, detects=True), built, settings)


class DetectedRegions(LocatingBackbone):
    """Regions are the picture and the boxes of a detector."""

    def __init__(self, model: HubModel, inner: Backbone, settings: Extraction) -> None:
        self._recipe = recipe = picture_recipe.read_processor(model.folder, _detector_recipe)
        self._detector = HubDetector(model, recipe).eval().requires_grad_(False)
        self._fewest, most = settings.regions
        super().__init__(
            inner,
            most,
            detector=self._detector,
            weights_sha256=f"{model.weights_sha256} {inner.weights_sha256}",
        )
        self._score, self._nms = settings.score, settings.nms
        self._name = model.name
        self.preprocessing = (
            f"detector: {recipe}; {self._fewest} to {most} regions, score above {settings.score}, "
            f"overlap at most {settings.nms}; regions: {self.preprocessing}"
        )
        kind = str(settings.backbone and settings.backbone.kind)
        self.facts = {
            "detector": model.name,
            "score": str(settings.score),
            "nms": str(settings.nms),
            "regions": f"{self._fewest}-{most}",
            "backbone.kind": kind,
            **{f"backbone.{fact}": value for fact, value in inner.facts.items()},
        }
        self.locate(self.prepare(Picture("a grey picture", Image.new("RGB", (64, 64), "grey"))))

    def prepare(self, image: Picture) -> _Prepared:
        picture = Image.fromarray(read_image(image.source))
        pixels = torch.from_numpy(self._recipe.pixels(picture))
        return image, pixels.permute(2, 0, 1)[None], torch.tensor(picture.size)

    def locate(self, prepared: _Prepared) -> Located:
        image, pixels, size = prepared
        boxes, scores = self._detect(image.image_id, pixels)
        large = ((boxes[:, 2:] - boxes[:, :2]) * size >= 1).all(dim=1)
        boxes, scores = boxes[large], scores[large]
        best = suppress(boxes, scores, self._nms, self.max_regions - 1)
        count = max(int((scores[best] > self._score).sum()), self._fewest - 1)
        regions = np.concatenate([WHOLE, boxes[best[:count]].numpy()])
        return Located(image.image_id, image.source, regions)

    def _detect(self, image_id: str, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """The boxes (q, 4) in 0..1 and the scores (q,) of a picture, on the CPU."""
        detector = self._detector
        try:
            with torch.inference_mode():
                boxes, scores = detector(pixels.to(detector.mean.device))
                detections = torch.cat([boxes[0], scores[0, :, None]], dim=1).cpu()
        except Exception as error:  # the code of many models, on pictures of any shape
            size = " x ".join(map(str, pixels.shape[:1:-1]))
            raise ConfigError(
                f"{self._name}: no boxes of {image_id}, resized to {size} pixels "
                f"({first_line(error)}). Name another detector"
            ) from None
        if not detections.isfinite().all():
            raise ConfigError(
                f"{self._name}: the boxes of {image_id} are not finite. Name another detector"
            )
        return detections[:, :4], detections[:, 4]


class HubDetector(Scaled):
    """Pixels (1, 3, H, W) as bytes -> boxes (1, q, 4) in 0..1 and scores (1, q), best class each.

    A softmax has a class for the background; without one, each class has a sigmoid.
    """

    def __init__(self, model: HubModel, recipe: "DetectorRecipe") -> None:
        super().__init__(recipe)
        self.network: Any = model.network
        self._background = recipe.background

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        result = self.network(pixel_values=self.scaled(pixels))
        logits = result.logits
        x, y, width, height = result.pred_boxes.unbind(-1)
        right, bottom = x + width / 2, y + height / 2
        boxes = torch.stack([x - width / 2, y - height / 2, right, bottom], dim=-1)
        shares = logits.softmax(-1)[..., :-1] if self._background else logits.sigmoid()
        return boxes.clamp(0, 1), shares.amax(-1)


@dataclass(frozen=True)
class DetectorRecipe(picture_recipe.Scaling):
    """How a picture becomes the pixels (h, w, 3) of a detector. Nothing is cropped or padded.

    Attributes:
        size: {"height", "width"} are the sides. With {"shortest_edge", "longest_edge"} or
            {"max_height", "max_width"}, a picture keeps its shape.
        multiple: sides are multiples of this number, with `shortest_edge`.
        background: whether the detector's last class is the background.
    """

    size: dict[str, int]
    multiple: int
    background: bool

    def __str__(self) -> str:
        size = " ".join(f"{key} {side}" for key, side in sorted(self.size.items()))
        return self.described(f"{size} {self.resample.name.lower()}")

    def pixels(self, image: Image.Image) -> NDArray[np.uint8]:
        """The pixels (h, w, 3) of an upright RGB picture."""
        return np.array(image.resize(self._sides(*image.size), self.resample))

    def _sides(self, width: int, height: int) -> tuple[int, int]:
        """Rounded as transformers rounds; a strip keeps at least one pixel or `multiple`."""
        if "height" in self.size:
            return self.size["width"], self.size["height"]
        if "max_height" in self.size:
            scale = min(self.size["max_height"] / height, self.size["max_width"] / width)
            return max(int(width * scale), 1), max(int(height * scale), 1)
        shorter, longer = sorted((width, height))
        side, exact = self.size["shortest_edge"], float(self.size["shortest_edge"])
        if longer / shorter * side > self.size["longest_edge"]:
            exact = self.size["longest_edge"] * shorter / longer
            side = round(exact)
        other = longer if side == shorter else int(exact * longer / shorter)
        short, long = (max(part - part % self.multiple, self.multiple) for part in (side, other))
        return (short, long) if width < height else (long, short)


def _detector_recipe(content: dict[str, Any]) -> DetectorRecipe:
    """Raises a `ValueError`, `TypeError` or `KeyError` that says what is wrong."""
    kind = picture_recipe.processor_kind(content, _DETECTORS)
    real_time = kind == "RTDetr"
    if content.get("do_pad", not real_time) and content.get("pad_size"):
        raise ValueError("pad_size: boxes in padded pictures cannot be used")
    size = content.get("size") or _DETECTOR_SIZES[real_time]
    if isinstance(size, int):
        size = {"shortest_edge": size, "longest_edge": content.get("max_size", 1333)}
    given = size.items() if isinstance(size, dict) else ()
    size = {key: side for key, side in given if side is not None}
    if set(size) not in map(set, _SIDES):
        raise ValueError(f"the size {str(content['size'])[:80]} has none of the forms {_SIDES}")
    if any(
        not isinstance(side, int) or not 1 <= side <= picture_recipe.LARGEST
        for side in size.values()
    ):
        raise ValueError(f"the size {str(size)[:80]}: a side is not in 1..{picture_recipe.LARGEST}")
    background, multiple = _DETECTORS[kind]
    defaults = {"do_normalize": not real_time, "image_mean": _MEAN, "image_std": _STD}
    scaling = picture_recipe.read_scaling(defaults | content, picture_recipe.BILINEAR)
    return DetectorRecipe(*scaling, size, multiple, background)
