"""One training on the sketches and images of seen classes, and the test on unseen classes.

Every image of a sketch's class is a positive. A query has R positives in the gallery. `hit(k)` is 1
if the k-th image is a positive, else 0. `precision(k)` is the share of positives among the first k
images:

    map            (1 / R) sum over all k of hit(k) precision(k)
    map_at_200     the same sum over k <= 200, divided by the positives among the first 200
    map_at_200_r   the same sum over k <= 200, divided by min(R, 200)
    p_at_200       the positives among the first 200, divided by 200

All metrics are means over queries, in percent. Negatives rank before positives with equal scores.

Papers do not say which form of mAP@200 they print. `map_at_200` is the form in the code that the
successors of Doodle to Search share. SwAMP's numbers are possible in this form only: on Sketchy the
paper prints 51.9 beside a P@200 of 40.8, but `map_at_200_r` is never above P@200 if R >= 200.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from manymatch.config.preset import Count, NonNegative, Positive
from manymatch.evaluation.ranking.ranks import Direction
from manymatch.evaluation.split_results import write_run
from manymatch.experiments.fitting import fit
from manymatch.experiments.sketch_features import Data, Side
from manymatch.losses.pseudo_labels import LabelSettings, SwappedLabels, objective
from manymatch.methods.shared.matching import Matching, MatchingSettings
from manymatch.model.scores import checked

CPU = torch.device("cpu")
_QUERIES = 1024
"""The number of queries that are ranked at once."""
_ROWS = 4096
"""The number of rows that are embedded at once."""
CUT = 200
_SCORES = 2**24
"""The number of scores that are held at once."""
NAMES = ("map", "map_at_200", "map_at_200_r", "p_at_200")


class SketchSettings(LabelSettings, MatchingSettings):
    """The settings of one training. `weight: 0` trains with the contrastive loss alone.

    The defaults of weight, classes, queue, tau and eta are SwAMP's (section 5.2). The networks and
    the optimiser are ours.
    """

    n_classes: Count = 500
    queue: Annotated[int, Field(ge=0)] = 1000
    tau: Positive = 0.25
    weight: NonNegative = 0.1
    all_negatives_epochs: Annotated[int, Field(ge=0)] = 0
    objective: Literal["triplet", "info_nce"] = "triplet"
    hidden: Count = 1024
    size: Count = 256
    """The size of the embeddings."""
    epochs: Count = 20
    batch: Annotated[int, Field(ge=2)] = 128
    """The number of sketches in a batch; each sketch has an image of its class."""
    lr: Positive = 2e-4
    validation: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.1
    """The share of the seen classes that is held out. Their mAP decides which epoch is kept."""


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
    """Train on `device`, and test the epoch with the best validation mAP. The seed decides the
    held-out classes, the initial weights and the batches. `ranks` is the run file for the best
    images of the test.

    Returns:
        The metrics of `retrieval` on the unseen classes; `validation`, the mAP of the held-out
        classes; `epoch` (1-based); `seconds`.
    """
    started = time.perf_counter()
    torch.manual_seed(seed)
    # The held-out classes, and the classes to train on, which are at least two.
    count = min(max(1, round(settings.validation * len(data.seen))), len(data.seen) - 2)
    order = data.seen[torch.randperm(len(data.seen))]
    held, trained = order[:count], order[count:]
    heads = Heads(settings, data.sketches.vectors.shape[1], data.images.vectors.shape[1])
    heads.to(device)
    sketches, partners = data.sketches.of(trained), Partners(data.images.of(trained))
    matching, labels = Matching(settings), settings.loss(settings.size)

    def losses(epoch: int) -> Iterator[dict[str, Tensor]]:
        matching.start_epoch(epoch)
        for rows in torch.randperm(len(sketches.labels)).split(settings.batch):
            classes = sketches.labels[rows]
            pairs = heads(sketches.vectors[rows], partners.draw(classes))
            yield loss(pairs, classes, matching, labels)

    def validate() -> float:
        return score(heads, data, held)["map"]

    epoch, validation = fit(heads, labels, losses, validate, epochs=settings.epochs, lr=settings.lr)
    return {
        **score(heads, data, data.unseen, ranks),
        "validation": validation,
        "epoch": epoch,
        "seconds": round(time.perf_counter() - started, 1),
    }


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
    pairs: tuple[Tensor, Tensor], classes: Tensor, matching: Matching, labels: SwappedLabels | None
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


def retrieval(
    queries: Tensor, labels: Tensor, gallery: Tensor, gallery_labels: Tensor, scores: int = _SCORES
) -> dict[str, float]:
    """The four metrics of ranking by cosine. Memory grows with the gallery, not with the queries.

    Args:
        queries, gallery: `(n, D)` and `(m, D)`, L2-normalised.
        labels, gallery_labels: the classes `(n,)` and `(m,)`. The gallery has the class of every
            query.
        scores: the number of scores that are held at once, at least those of one query.
    """
    for vectors in (queries, gallery):
        checked(vectors)
    total = np.zeros(len(NAMES))
    for label in labels.unique():
        positive = gallery_labels == label
        negatives, positives = gallery[~positive].T, gallery[positive].T
        for block in queries[labels == label].split(max(1, scores // len(gallery))):
            total += _sums(_ranks((block @ negatives).numpy(), (block @ positives).numpy()))
    return dict(zip(NAMES, (100 * total / len(queries)).tolist(), strict=True))


def _ranks(negatives: NDArray[Any], positives: NDArray[Any]) -> NDArray[np.int64]:
    """The ascending ranks `(q, R)`, from 1, of the positives of q queries, by scores `(q, m - R)`
    and `(q, R)`. To sort both in place takes a tenth of the time of sorting all together."""
    negatives.sort(axis=1)
    positives.sort(axis=1)
    best_first = positives[:, ::-1]
    before = [
        len(row) - np.searchsorted(row, scores, side="left")
        for row, scores in zip(negatives, best_first, strict=True)
    ]
    return np.stack(before) + np.arange(1, positives.shape[1] + 1)


def _sums(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """The four metrics, summed over queries whose positives have the ranks `(q, R)`."""
    count = ranks.shape[1]
    precision = np.arange(1, count + 1) / ranks
    within = ranks <= CUT
    hits, precisions = within.sum(1), (precision * within).sum(1)
    return np.array(
        [
            precision.mean(1).sum(),
            (precisions / np.maximum(hits, 1)).sum(),
            (precisions / min(count, CUT)).sum(),
            (hits / CUT).sum(),
        ]
    )
