"""What a trained model is used for, on a GPU: search, evaluation, features of pictures."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from backbones import MODELS, jpeg, saved
from gpu_steps import Lines
from search_scan import made_up, untrained
from torch import nn
from training_step import built, made_up_words, published

import manymatch
from manymatch.evaluation.ranking.ranks import rank
from manymatch.experiments.costs.timing import seconds
from manymatch.features.backbone import GridBackbone
from manymatch.features.butd import ButdDetector
from manymatch.features.butd.network import Network, folded
from manymatch.features.extractors import Detection, Extractor
from manymatch.features.image_list import Picture
from manymatch.methods.shared.embeddings import Embeddings
from manymatch.model.embed import inference
from manymatch.networks.backbones import resnet
from manymatch.search.scan.scanner import Scanner


def checks(
    folder: Path, options: Any, device: torch.device
) -> Iterator[tuple[str, Callable[[], Lines]]]:
    """The checks in their order. `options`: those of `gpu_check`."""
    yield "search", partial(search, folder, device, 20 * options.stored)
    if device.type == "cuda":
        yield "evaluation of 5,000 images", partial(evaluation, device)
        for name in (*MODELS, "resnet152", "butd"):
            yield name, partial(pictures, name, folder, device)


def evaluation(device: torch.device, images: int = 5000) -> Lines:
    """Rank DivE's random embeddings of as many images and five captions each, 100 results deep."""
    method = built(published("dive"), made_up_words()).to(device).eval()
    random = torch.Generator(device).manual_seed(0)

    def embedded(count: int) -> Embeddings:
        vectors = torch.randn(count, 4, 1024, generator=random, device=device)
        return Embeddings(nn.functional.normalize(vectors, dim=2))

    image_of = torch.arange(images).repeat_interleave(5)
    gallery = embedded(images), embedded(5 * images), image_of
    with inference(method, device):
        work = partial(rank, method.score, *gallery, depth=100, t2i_score=method.t2i_score)
        work()
        yield "dive, s", seconds(work, device), "", None


def pictures(name: str, folder: Path, device: torch.device, count: int = 256) -> Lines:
    """Features of made-up pictures by a network of random weights: a ResNet-152, a model of
    transformers, or bottom-up attention."""
    made = folder / name.replace("/", "-")
    if name == "butd":
        detector = ButdDetector(folded(Network()), 36, 36, "")
        extractor: Extractor | Detection = Detection(name, detector, device)
    elif name == "resnet152":
        network = resnet.fresh(name)
        backbone = GridBackbone(
            network, resnet.MEAN, resnet.STD, size=224, width=resnet.WIDTH, scaling=""
        )
        extractor = Extractor(name, backbone, device, 64)
    else:
        extractor = Extractor(name, saved(MODELS[name](), made), device, 64)
    given = [Picture(str(number), jpeg(number)) for number in range(count)]
    list(extractor.run(given[:64]))
    yield "pictures/s", count / seconds(lambda: list(extractor.run(given)), device), "", None


def search(folder: Path, device: torch.device, items: int) -> Lines:
    """Search a text among random sets of four elements, all scored on the device; the best items
    against those of a scan on the CPU."""
    model = untrained(folder / "model", "dive")
    torch.manual_seed(0)
    gallery, query = made_up(items, 4, 256, None), made_up(1, 4, 256, None)
    (expected,) = Scanner(model, gallery).top(query, 10)
    there = manymatch.load(folder / "model", device.type)
    scanner = Scanner(there, gallery.to(device), resident=True)
    (found,) = scanner.top(query, 10)
    same = float((found.rows == expected.rows).mean())
    yield "the same best items", same, "1", lambda share: share == 1
    yield "a query, ms", 1e3 * seconds(lambda: scanner.top(query, 10), device), "", None
