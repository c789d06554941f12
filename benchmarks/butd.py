"""The detector of bottom-up attention: images per second, and the time of each part.

    python benchmarks/butd.py [--images 3] [--device cpu] [--weights FILE]

The images are random, 640 x 480 pixels, processed at the published size (800 x 600, 300 proposals).
Without `--weights` the weights are random, which does not change the amount of work. The first
image is a warm-up. On the CPU, processor seconds are printed too: they are valid on a busy machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from measuring import arguments
from torch import nn

from manymatch.features.butd import detector as module
from manymatch.features.butd import operations
from manymatch.features.butd.detector import ButdDetector
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
    clocks = Clocks(options.device)
    clocks.watch(network.backbone, "stages 1 to 4")
    clocks.watch(network.roi_heads, "stage 5 on 300 regions")
    pool = operations.pool_regions
    module.operations.pool_regions = clocks.timed(pool, "pooling")
    rng = np.random.default_rng(0)
    for number in range(options.images + 1):
        image = rng.integers(0, 255, SIZE, dtype=np.uint8)
        if number == 1:
            clocks.reset()
        with torch.inference_mode():
            clocks.timed(detect, "image")(detector, image, options.device)
    clocks.report(options.images)


def detect(detector: ButdDetector, image: np.ndarray, device: str) -> None:
    regions = detector.detect(detector.prepare(image).to(device))
    assert regions.features.shape == (36, 2048)


def random_network() -> Network:
    torch.manual_seed(0)
    network = Network().eval().requires_grad_(False)
    for layer in network.modules():
        if isinstance(layer, Convolution):
            nn.init.kaiming_normal_(layer.weight)
            layer.norm.weight.fill_(0.5)
            layer.fold()
    network.proposal_generator.anchor_generator.cell_anchors[0].copy_(torch.tensor(ANCHORS))
    return network


class Clocks:
    """Wall-clock and processor seconds of named parts of the work."""

    def __init__(self, device: str) -> None:
        self._device = device
        self.reset()

    def reset(self) -> None:
        self._wall: dict[str, float] = {}
        self._processor: dict[str, float] = {}

    def watch(self, layer: nn.Module, name: str) -> None:
        layer.forward = self.timed(layer.forward, name)

    def timed(self, work: Callable[..., Any], name: str) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            wall, processor = time.perf_counter(), time.process_time()
            result = work(*arguments)
            if self._device != "cpu":
                torch.cuda.synchronize()
            for total, start, clock in (
                (self._wall, wall, time.perf_counter),
                (self._processor, processor, time.process_time),
            ):
                total[name] = total.get(name, 0.0) + clock() - start
            return result

        return timed

    def report(self, images: int) -> None:
        for name, seconds in self._wall.items():
            processor = self._processor[name] / images
            print(f"{name:24} {seconds / images:8.2f} s, processor {processor:8.2f} s")
        wall, processor = self._wall["image"], self._processor["image"]
        print(f"{images / wall:.4f} images/s; {images / processor:.4f} images per processor second")


if __name__ == "__main__":
    main()
