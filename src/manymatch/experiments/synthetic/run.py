"""One training on synthetic pairs, and the test of the trained encoders."""

from __future__ import annotations

import copy
import time
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from manymatch.evaluation.ranking.metrics import recall_metrics
from manymatch.experiments.synthetic.pairs import WIDTH, Pairs, make_pairs
from manymatch.experiments.synthetic.settings import RunSettings
from manymatch.losses.sinkhorn import transport
from manymatch.losses.swapped_labels import SwappedLabels, objective
from manymatch.losses.triplet import triplet
from manymatch.methods.swapped_labels import swapped_labels

TOLERANCE = 1e-4
"""The tolerance of the solution whose Newton steps `assignment` counts."""


class Encoders(nn.Module):
    """A network with two hidden layers for each modality. Embeddings have length 1."""

    def __init__(self, hidden: int, size: int) -> None:
        super().__init__()
        self.a, self.b = _network(hidden, size), _network(hidden, size)

    def forward(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        return normalize(self.a(pairs.a), dim=1), normalize(self.b(pairs.b), dim=1)


def _network(hidden: int, size: int) -> nn.Sequential:
    first, second, last = (
        nn.Linear(WIDTH, hidden),
        nn.Linear(hidden, hidden),
        nn.Linear(hidden, size),
    )
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), last)


class Trained(NamedTuple):
    """Encoders with the weights of the best `epoch` (1-based), and the labels after the last
    epoch."""

    encoders: Encoders
    labels: SwappedLabels | None
    epoch: int


def run(settings: RunSettings, seed: int) -> dict[str, Any]:
    """Draw the data, train, and test the epoch with the best validation R@1.

    Args:
        seed: decides the data, the initial weights and the batches.

    Returns:
        `pair` and `class`: the `recalls` of the test pairs; `epoch` (1-based); `assignment`, see
        there; `seconds` and `processor_seconds`.
    """
    wall, processor = time.perf_counter(), time.process_time()
    training, validation, test = make_pairs(seed)
    trained = train(settings, seed, training, validation)
    return {
        **recalls(*_embedded(trained.encoders, test), test.label),
        "epoch": trained.epoch,
        "assignment": assignment(trained.labels),
        "seconds": round(time.perf_counter() - wall, 1),
        "processor_seconds": round(time.process_time() - processor, 1),
    }


def train(settings: RunSettings, seed: int, training: Pairs, validation: Pairs) -> Trained:
    """Train on `training`, and keep the epoch with the best R@1 on `validation`."""
    torch.manual_seed(seed)
    encoders = Encoders(settings.hidden, settings.size)
    labels = swapped_labels(settings, settings.size)
    if settings.contrastive_epochs:
        warm = settings.model_copy(update={"epochs": settings.contrastive_epochs})
        encoders.load_state_dict(_fit(encoders, None, training, validation, warm)[0])
    weights, epoch = _fit(encoders, labels, training, validation, settings)
    encoders.load_state_dict(weights)
    return Trained(encoders, labels, epoch)


def _fit(
    encoders: Encoders,
    labels: SwappedLabels | None,
    training: Pairs,
    validation: Pairs,
    settings: RunSettings,
) -> tuple[dict[str, Tensor], int]:
    """The weights of the epoch with the best validation R@1 of pairs, and that epoch (1-based)."""
    trained = nn.ModuleList([encoders] if labels is None else [encoders, labels])
    optimizer = torch.optim.Adam(trained.parameters(), lr=settings.lr, fused=True)
    best, weights, best_epoch = -1.0, encoders.state_dict(), 0
    for epoch in range(1, settings.epochs + 1):
        for rows in torch.randperm(len(training.label)).split(settings.batch):
            loss = _loss(encoders, labels, training.rows(rows), settings)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        r1 = recalls(*_embedded(encoders, validation), validation.label)["pair"]["r1"]
        if r1 > best:
            best, weights, best_epoch = r1, copy.deepcopy(encoders.state_dict()), epoch
    return weights, best_epoch


def _loss(
    encoders: Encoders, labels: SwappedLabels | None, batch: Pairs, settings: RunSettings
) -> Tensor:
    a, b = encoders(batch)
    contrastive = {"triplet": triplet(a @ b.T, torch.arange(len(a)), settings.margin)}
    return torch.stack(list(objective(contrastive, labels, a, b).values())).sum()


@torch.no_grad()
def _embedded(encoders: Encoders, pairs: Pairs) -> tuple[Tensor, Tensor]:
    return encoders(pairs)


def recalls(a: Tensor, b: Tensor, label: Tensor) -> dict[str, dict[str, float]]:
    """`recall_metrics` of b for queries a, by the best positive of each query.

    The positive of `pair` is the partner, the positives of `class` are all b of the same class. A
    negative with an equal score ranks before the positive.
    """
    scores = a @ b.T
    positive = {
        "pair": torch.eye(len(label), dtype=torch.bool),
        "class": label[:, None] == label,
    }
    return {kind: recall_metrics(_ranks(scores, mask)) for kind, mask in positive.items()}


def _ranks(scores: Tensor, positive: Tensor) -> Tensor:
    best = scores.masked_fill(~positive, -torch.inf).amax(1, keepdim=True)
    return 1 + ((scores >= best) & ~positive).sum(1)


@torch.no_grad()
def assignment(labels: SwappedLabels | None) -> dict[str, float] | None:
    """How well the queue of a is assigned to classes; None without a queue.

    Returns:
        `error`: the largest error of a class's share with the settings of `labels`, in samples;
        `steps`: the Newton steps that solve the assignment to `TOLERANCE` without a start.
    """
    if labels is None or not int(labels.images.queue.filled):
        return None
    log_p = queued_log_p(labels)
    assigned = transport(log_p, labels.eta, labels.rounds, labels.tolerance)
    return {
        "error": assigned.error,
        "steps": transport(log_p, labels.eta, tolerance=TOLERANCE).rounds,
    }


def queued_log_p(labels: SwappedLabels) -> Tensor:
    """`(n, n_classes)` class log-probabilities of the samples in the queue of a."""
    queue = labels.images.queue
    return labels.classes(queue.rows[: int(queue.filled)])
