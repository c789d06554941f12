"""One training on the seen classes, and how well images of the unseen ones are found."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from manymatch.experiments.sketches.data import Data, Side
from manymatch.experiments.sketches.metrics import retrieval
from manymatch.experiments.sketches.ranks import named, write_ranks
from manymatch.experiments.sketches.settings import SketchSettings
from manymatch.losses.swapped_labels import SwappedLabels, objective
from manymatch.methods.matching import Matching
from manymatch.methods.swapped_labels import swapped_labels

CPU = torch.device("cpu")
_ROWS = 4096
"""Rows embedded at once."""


class Heads(nn.Module):
    """A network of two layers for each modality, to the unit sphere."""

    def __init__(self, settings: SketchSettings, sketch_width: int, image_width: int) -> None:
        super().__init__()
        self.sketch, self.image = (
            nn.Sequential(
                nn.Linear(width, settings.hidden),
                nn.ReLU(),
                nn.Linear(settings.hidden, settings.size),
            )
            for width in (sketch_width, image_width)
        )

    def forward(self, sketches: Tensor, images: Tensor) -> tuple[Tensor, Tensor]:
        """`(n, F)` and `(m, G)` of any precision -> `(n, D)` and `(m, D)` of length 1."""
        return _embedded(self.sketch, sketches), _embedded(self.image, images)


def _embedded(head: nn.Module, vectors: Tensor) -> Tensor:
    """A block of rows at a time, on the head's device; float16 serves to keep them alone."""
    device = next(head.parameters()).device
    # Entries of vectors of length 1 are the smaller the more there are.
    scale = vectors.shape[1] ** 0.5
    parts = [head(part.to(device).float() * scale) for part in vectors.split(_ROWS)]
    return normalize(torch.cat(parts), dim=1)


def run(
    settings: SketchSettings,
    data: Data,
    seed: int,
    device: torch.device = CPU,
    ranks: Path | None = None,
) -> dict[str, Any]:
    """Train from `seed` on `device` and test the epoch of the best validation mAP; the best images
    of the test go to the run file `ranks`.

    Returns:
        The metrics of `retrieval` on the unseen classes; `validation`, the mAP of the classes
        that were held out; `epoch` (1-based), `seconds`.
    """
    started = time.perf_counter()
    torch.manual_seed(seed)
    held, trained = _held_out(data.seen, settings.validation)
    heads = Heads(settings, data.sketches.vectors.shape[1], data.images.vectors.shape[1])
    heads.to(device)
    epoch, validation = _fit(heads, settings, data, trained, held)
    return {
        **score(heads, data, data.unseen, ranks),
        "validation": validation,
        "epoch": epoch,
        "seconds": round(time.perf_counter() - started, 1),
    }


def _held_out(seen: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Some of the seen classes, and the others; two at least are trained on."""
    count = min(max(1, round(share * len(seen))), len(seen) - 2)
    order = seen[torch.randperm(len(seen))]
    return order[:count], order[count:]


def _fit(
    heads: Heads, settings: SketchSettings, data: Data, trained: Tensor, held: Tensor
) -> tuple[int, float]:
    """Give `heads` the weights of the best epoch; which it is, and its validation mAP."""
    sketches, partners = data.sketches.of(trained), Partners(data.images.of(trained))
    matching = Matching(settings)
    labels = swapped_labels(settings, settings.size)
    parts = nn.ModuleList([heads] if labels is None else [heads, labels])
    parts.to(next(heads.parameters()).device)
    optimizer = torch.optim.Adam(parts.parameters(), lr=settings.lr, fused=True)
    best, weights, chosen = -1.0, heads.state_dict(), 0
    for epoch in range(settings.epochs):
        matching.start_epoch(epoch)
        for rows in torch.randperm(len(sketches.labels)).split(settings.batch):
            classes = sketches.labels[rows]
            pairs = heads(sketches.vectors[rows], partners.draw(classes))
            loss = _loss(pairs, classes, matching, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        reached = score(heads, data, held)["map"]
        if reached > best:
            best, weights, chosen = reached, copy.deepcopy(heads.state_dict()), epoch + 1
    heads.load_state_dict(weights)
    return chosen, best


class Partners:
    """Images by class, to draw a partner for each sketch from."""

    def __init__(self, images: Side) -> None:
        order = images.labels.argsort(stable=True)
        self._vectors = images.vectors[order]
        self._counts = torch.bincount(images.labels)
        self._first = self._counts.cumsum(0) - self._counts

    def draw(self, classes: Tensor) -> Tensor:
        """`(n, F)`: a random image of each of `classes (n,)`."""
        places = (torch.rand(len(classes)) * self._counts[classes]).long()
        return self._vectors[self._first[classes] + places]


def _loss(
    pairs: tuple[Tensor, Tensor],
    classes: Tensor,
    matching: Matching,
    labels: SwappedLabels | None,
) -> Tensor:
    """SwAMP's objective; images of a sketch's own class are no negatives of the contrastive
    loss."""
    sketches, images = pairs
    classes = classes.to(sketches.device)
    others = classes[:, None] == classes
    others.fill_diagonal_(False)
    scores = (sketches @ images.T).masked_fill(others, -torch.inf)
    contrastive = matching.terms(scores, torch.arange(len(classes), device=classes.device))
    return torch.stack(list(objective(contrastive, labels, sketches, images).values())).sum()


@torch.no_grad()
def score(heads: Heads, data: Data, classes: Tensor, ranks: Path | None = None) -> dict[str, float]:
    """`retrieval` of the images of `classes` for their sketches, whose best go to `ranks`."""
    sketches, images = data.sketches.of(classes), data.images.of(classes)
    queries, gallery = (part.cpu() for part in heads(sketches.vectors, images.vectors))
    if ranks is not None:
        names = named(sketches.labels, data.classes), named(images.labels, data.classes)
        write_ranks(ranks, queries, gallery, names)
    return retrieval(queries, sketches.labels, gallery, images.labels)
