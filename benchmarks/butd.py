"""The detector of bottom-up attention: the time of an image, and of each part.

    python benchmarks/butd.py [--images 3] [--device cpu] [--weights FILE]

The images are random, 640 x 480 pixels, processed at the published size (800 x 600, 300 proposals).
Without `--weights` the weights are random, which does not change the amount of work. The first
image is a warm-up. On the CPU, processor seconds are printed too: they are valid on a busy machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from measuring import Times, arguments, clocks
from torch import nn

from manymatch.features.butd import ButdDetector, operations
from manymatch.features.butd.network import Convolution, Network, load_network

SIZE = (480, 640, 3)
ANCHORS = [
    [-side * a / 2, -side / a / 2, side * a / 2, side / a / 2]
    for side in (64, 128, 256, 512)
    for a in (2**-0.5, 1, 2**0.5)
]


def main() -> None:
    options = arguments(__doc__, images=3, device="cpu", weights=None)
    network = load_network("butd", str(options.weights)) if options.weights else random_network()
    detector = ButdDetector(network.to(options.device), 36, 36, "none")
    parts = Parts(options.device)
    parts.watch(network.backbone, "stages 1 to 4")
    parts.watch(network.roi_heads, "stage 5 on 300 regions")
    pool = operations.pool_regions
    operations.pool_regions = parts.timed(pool, "pooling")
    rng = np.random.default_rng(0)
    for number in range(options.images + 1):
        image = rng.integers(0, 255, SIZE, dtype=np.uint8)
        if number == 1:
            parts.times.clear()
        with torch.inference_mode():
            parts.timed(detect, "image")(detector, image, options.device)
    parts.report(options.images)


def detect(detector: ButdDetector, image: np.ndarray, device: str) -> None:
    features, _ = detector.detect(detector.prepare(image).to(device))
    assert features.shape == (36, 2048)


def random_network() -> Network:
    torch.manual_seed(0)
    network = Network().eval().requires_grad_(False)
    for layer in network.modules():
        if isinstance(layer, Convolution):
            nn.init.kaiming_normal_(layer.weight)
            layer.norm.weight.fill_(0.5)  # type: ignore[operator]
            layer.fold()
    network.proposal_generator.anchor_generator.cell_anchors[0].copy_(torch.tensor(ANCHORS))
    return network


class Parts:
    """The times of named parts of the work."""

    def __init__(self, device: str) -> None:
        self._device = device
        self.times: dict[str, list[Times]] = {}

    def watch(self, layer: nn.Module, name: str) -> None:
        layer.forward = self.timed(layer.forward, name)

    def timed(self, work: Callable[..., Any], name: str) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            results: list[Any] = []

            def run() -> None:
                results.append(work(*arguments))
                if self._device != "cpu":
                    torch.cuda.synchronize()

            self.times.setdefault(name, []).append(clocks(run))
            return results[0]

        return timed

    def report(self, images: int) -> None:
        for name, times in self.times.items():
            wall, processor = (sum(clock) / images for clock in zip(*times, strict=True))
            print(f"{name:24} {wall:8.2f} s, processor {processor:8.2f} s an image")


if __name__ == "__main__":
    main()
