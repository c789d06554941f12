"""Bottom-up attention on own images (Anderson et al., CVPR 2018): Faster R-CNN with ResNet-101,
trained on the objects and attributes of Visual Genome.

As the published features were made: short side 600 px, long side at most 1,000; 300 proposals;
in each class of objects suppression at an overlap of 0.3; a region counts as much as its best
class in which it survives. The features are those of the proposals, and so are the boxes.
"""

from __future__ import annotations

from pathlib import Path

from manymatch.features.butd.detector import ButdDetector
from manymatch.features.butd.weights import load_network
from manymatch.features.detector import DetectorSources
from manymatch.system.files import sha256


def build(name: str, sources: DetectorSources) -> ButdDetector:
    """`sources.weights`: `pytorch_model.bin` (or a safetensors file of the same names) of
    `unc-nlp/frcnn-vg-finetuned`; `sources.regions`: the fewest and most regions of an image,
    (36, 36) or (10, 100) in published files."""
    network = load_network(name, sources.weights)
    return ButdDetector(network, *sources.regions, sha256(Path(str(sources.weights))))
