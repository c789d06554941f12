"""One training on the seen classes, and the test on the unseen classes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from manymatch.evaluation.ranking.ranks import Direction
from manymatch.evaluation.split_results import write_run
from manymatch.experiments.fit import fit
from manymatch.experiments.sketches.data import Data, Side
from manymatch.experiments.sketches.metrics import CUT, retrieval
from manymatch.experiments.sketches.settings import SketchSettings
from manymatch.losses.pseudo_labels import SwappedLabels, objective
from manymatch.methods.shared.matching import Matching

CPU = torch.device("cpu")
_QUERIES = 1024
"""The number of queries that are ranked at once."""
_ROWS = 4096
"""The number of rows that are embedded at once."""


class Heads(nn.Module):
    """A network of two layers for each modality. Embeddings have length 1."""

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
        """Embed features `(n, F)` and `(m, G)` of any precision as `(n, D)` and `(m, D)`."""
        return _embedded(self.sketch, sketches), _embedded(self.image, images)


def _embedded(head: nn.Module, vectors: Tensor) -> Tensor:
    """Embed a block of rows at a time on the head's device. float16 is for storage only."""
    device = next(head.parameters()).device
    # The entries of a vector of length 1 shrink with the width: scale them back to about 1.
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
    """Train on `device`, and test the epoch with the best validation mAP.

    Args:
        seed: decides the held-out classes, the initial weights and the batches.
        ranks: the run file for the best images of the test; None writes no file.

    Returns:
        The metrics of `retrieval` on the unseen classes; `validation`, the mAP of the held-out
        classes; `epoch` (1-based); `seconds`.
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
    """The held-out classes and the classes to train on, which are at least two."""
    count = min(max(1, round(share * len(seen))), len(seen) - 2)
    order = seen[torch.randperm(len(seen))]
    return order[:count], order[count:]


def _fit(
    heads: Heads, settings: SketchSettings, data: Data, trained: Tensor, held: Tensor
) -> tuple[int, float]:
    """Train `heads`; return the best epoch and its validation mAP."""
    sketches, partners = data.sketches.of(trained), Partners(data.images.of(trained))
    matching = Matching(settings)
    labels = settings.loss(settings.size)

    def losses(epoch: int) -> Iterator[dict[str, Tensor]]:
        matching.start_epoch(epoch)
        for rows in torch.randperm(len(sketches.labels)).split(settings.batch):
            classes = sketches.labels[rows]
            pairs = heads(sketches.vectors[rows], partners.draw(classes))
            yield loss(pairs, classes, matching, labels)

    def validate() -> float:
        return score(heads, data, held)["map"]

    return fit(heads, labels, losses, validate, epochs=settings.epochs, lr=settings.lr)


class Partners:
    """Images sorted by class, from which a partner for each sketch is drawn."""

    def __init__(self, images: Side) -> None:
        order = images.labels.argsort(stable=True)
        self._vectors = images.vectors[order]
        self._counts = torch.bincount(images.labels)
        self._first = self._counts.cumsum(0) - self._counts

    def draw(self, classes: Tensor) -> Tensor:
        """The features `(n, F)` of a random image of each class in `classes (n,)`."""
        offsets = (torch.rand(len(classes)) * self._counts[classes]).long()
        return self._vectors[self._first[classes] + offsets]


def loss(
    pairs: tuple[Tensor, Tensor],
    classes: Tensor,
    matching: Matching,
    labels: SwappedLabels | None,
) -> dict[str, Tensor]:
    """The terms of SwAMP's objective. Other images of a sketch's class are no negatives of the
    contrastive loss."""
    sketches, images = pairs
    classes = classes.to(sketches.device)
    same_class = classes[:, None] == classes
    same_class.fill_diagonal_(False)
    scores = (sketches @ images.T).masked_fill(same_class, -torch.inf)
    contrastive = matching.terms(scores, torch.arange(len(classes), device=classes.device))
    return objective(contrastive, labels, sketches, images)


@torch.no_grad()
def score(heads: Heads, data: Data, classes: Tensor, ranks: Path | None = None) -> dict[str, float]:
    """The metrics of `retrieval` on `classes`. The best images are written to `ranks`, if given."""
    sketches, images = data.sketches.of(classes), data.images.of(classes)
    queries, gallery = (part.cpu() for part in heads(sketches.vectors, images.vectors))
    if ranks is not None:
        # The names CLASS/NUMBER let other tools read the positives.
        query_ids, item_ids = (
            [f"{data.classes[label]}/{row}" for row, label in enumerate(side.labels.tolist())]
            for side in (sketches, images)
        )
        count = min(CUT, len(gallery))  # what the metrics at 200 need
        best = [torch.topk(block @ gallery.T, count) for block in queries.split(_QUERIES)]
        items, scores = (
            torch.cat([getattr(block, part) for block in best]) for part in ("indices", "values")
        )
        write_run(ranks, Direction(torch.empty(0), items, scores), query_ids, item_ids, ranks.stem)
    return retrieval(queries, sketches.labels, gallery, images.labels)
