"""Bottom-up attention on own images (Anderson et al., CVPR 2018): Faster R-CNN with ResNet-101,
trained on the objects and attributes of Visual Genome.

The settings are those of the published features: short side 600 px, long side at most 1,000 px, 300
proposals, and suppression at an overlap of 0.3 within each object class. The score of a region is
its best score among the classes in which it survives. Features and boxes are those of the
proposals.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from manymatch.features.backbone import Detector, Sources
from manymatch.features.butd import operations
from manymatch.features.butd.network import Network, load_network
from manymatch.util.errors import ConfigError
from manymatch.util.files import sha256
from manymatch.util.packages import extra

MEAN_BGR = (102.9801, 115.9465, 122.7717)
SHORT, LONG, LEAST = 600, 1000, 16
"""Lengths of sides in pixels. The short side of a very long image is at least `LEAST`."""
STRIDE, POOLED = 16, 14
CHUNK, CHUNK_ON_GPU = 32, 100
"""Regions per batch of the last stage. On the CPU more take more memory, but not less time."""


@dataclass(frozen=True)
class Limits:
    """How many boxes remain: of the anchors, of the proposals, and in a class."""

    anchors: int = 6000
    proposals: int = 300
    proposal_overlap: float = 0.7
    class_overlap: float = 0.3
    score: float = 0.2
    """Regions with at least this score are kept beyond the minimum number."""


class ButdDetector(Detector):
    """The detector; see the package.

    Images pass through the network one at a time: padding to a common size would change the edges,
    and the 300 regions of one image use the hardware fully. The network computes in float32 on a
    GPU, too: half precision would exchange regions whose scores are almost equal.
    """

    def __init__(
        self,
        network: Network,
        fewest: int,
        most: int,
        weights_sha256: str,
        limits: Limits | None = None,
    ) -> None:
        limits = limits or Limits()
        if not 1 <= fewest <= most <= limits.proposals:
            raise ConfigError(
                f"regions: [{fewest}, {most}]: expected 1 <= fewest <= most <= {limits.proposals}"
            )
        self.network: Network = network.eval().requires_grad_(False)
        self.width = network.roi_heads.box_predictor.cls_score.in_features
        self.max_regions, self.weights_sha256 = most, weights_sha256
        self.preprocessing = (
            f"BGR less {MEAN_BGR}, short side {SHORT} px, long side at most {LONG}, "
            f"bilinear; {fewest} to {most} regions"
        )
        self._fewest, self._limits = fewest, limits
        if operations.fast is None:
            self.slow_on_gpu = (
                "bottom-up attention: torchvision is missing, with which a GPU is faster. To "
                f"install torchvision: pip install {extra('gpu')}"
            )

    def prepare(self, image: NDArray[np.uint8]) -> Tensor:
        """Return an RGB image (h, w, 3) as (3, H, W) float32, blue first."""
        sides = image.shape[:2]
        scale = min(SHORT / min(sides), LONG / max(sides))
        size = [max(LEAST, int(side * scale + 0.5)) for side in sides]
        planes = []
        for channel, mean in zip((2, 1, 0), MEAN_BGR, strict=True):
            # One at a time, because a large image in float32 takes much memory.
            plane = torch.from_numpy(np.ascontiguousarray(image[None, None, :, :, channel]))
            planes.append(F.interpolate(plane.float(), size, mode="bilinear")[0, 0] - mean)
        return torch.stack(planes)

    def detect(self, pixels: Tensor) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the features and boxes of a prepared image, best first."""
        maps = self.network.backbone(pixels[None])
        proposals = self._propose(maps, *pixels.shape[1:])
        at_once = CHUNK if maps.device.type == "cpu" else CHUNK_ON_GPU
        pooled = operations.pool_regions(maps[0], proposals, POOLED, 1 / STRIDE, at_once)
        described = zip(*map(self.network.roi_heads, pooled), strict=True)
        features, scores = map(torch.cat, described)  # (k, 2048) and (k, 1600)
        stays = operations.surviving(proposals, scores, self._limits.class_overlap)
        score = scores.where(stays, 0).amax(dim=1)
        best = score.argsort(descending=True, stable=True)[: self.max_regions]
        # One copy to the CPU, because each copy waits for a GPU.
        regions = torch.cat([score[best, None], proposals[best], features[best]], dim=1).cpu()
        above = int((regions[:, 0] >= self._limits.score).sum())
        regions = regions[: max(above, self._fewest)]
        height, width = pixels.shape[1:]
        boxes = regions[:, 1:5] / torch.tensor([width, height, width, height])
        return regions[:, 5:].numpy(), boxes.numpy()

    def _propose(self, maps: Tensor, height: int, width: int) -> Tensor:
        """Return the proposals (k, 4) in pixels, best first."""
        generator = self.network.proposal_generator
        objectness, deltas = generator.rpn_head(maps)
        around = generator.anchor_generator.cell_anchors[0]
        anchors = operations.anchor_grid(around, maps.shape[2], maps.shape[3], STRIDE)
        best = objectness.argsort(descending=True, stable=True)[: self._limits.anchors]
        boxes = operations.clipped(operations.moved(anchors[best], deltas[best]), height, width)
        valid = (boxes[:, :2] < boxes[:, 2:]).all(dim=1).nonzero()[:, 0]
        boxes, scores = boxes[valid], objectness[best[valid]]
        limits = self._limits
        survivors = operations.suppress(boxes, scores, limits.proposal_overlap, limits.proposals)
        return boxes[survivors]


def build(name: str, sources: Sources) -> ButdDetector:
    """Return the detector.

    The setting `weights` is `pytorch_model.bin` of `unc-nlp/frcnn-vg-finetuned`, or a safetensors
    file with the same names. `regions` are (36, 36) or (10, 100) in published files.
    """
    settings = sources.settings
    network = load_network(name, settings.weights)
    return ButdDetector(network, *settings.regions, sha256(Path(str(settings.weights))))
