"""Bottom-up attention on own images (Anderson et al., CVPR 2018): Faster R-CNN with ResNet-101,
trained on the objects and attributes of Visual Genome.

The settings are those of the published features: short side 600 px, long side at most 1,000 px, 300
proposals, and suppression at an overlap of 0.3 within each object class. The score of a region is
its best score among the classes in which it survives. Features and boxes are those of the
proposals.
"""

from __future__ import annotations

from pathlib import Path

from manymatch.features.backbone import Sources
from manymatch.features.butd.detector import ButdDetector
from manymatch.features.butd.network import load_network
from manymatch.util.files import sha256


def build(name: str, sources: Sources) -> ButdDetector:
    """Return the detector.

    `sources.weights` is `pytorch_model.bin` of `unc-nlp/frcnn-vg-finetuned`, or a safetensors file
    with the same names. `sources.regions` is the minimum and maximum number of regions, (36, 36) or
    (10, 100) in published files.
    """
    network = load_network(name, sources.weights)
    return ButdDetector(network, *sources.regions, sha256(Path(str(sources.weights))))
