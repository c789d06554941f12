"""One training on synthetic pairs, and its test."""

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
"""To which assignments are solved where it is counted how many steps that takes."""


class Encoders(nn.Module):
    """A network with two hidden layers for each modality, to the unit sphere."""

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
    """Encoders with the weights of the best `epoch`, labels as the last one left them."""

    encoders: Encoders
    labels: SwappedLabels | None
    epoch: int


def run(settings: RunSettings, seed: int) -> dict[str, Any]:
    """Train from `seed`, which also draws the data, and test the epoch of best validation R@1.

    Returns:
        `pair` and `class`: `recall_metrics` of test b for test a, where the own b or any b of
        the same class is right; `epoch`; `seconds` by the wall's clock and `processor_seconds`;
        and `assignment`, see there.
    """
    wall, processor = time.perf_counter(), time.process_time()
    training, validation, test = make_pairs(seed)
    trained = train(settings, seed, training, validation)
    found = recalls(*_embedded(trained.encoders, test), test.label)
    return {
        **found,
        "epoch": trained.epoch,
        "assignment": assignment(trained.labels),
        "seconds": round(time.perf_counter() - wall, 1),
        "processor_seconds": round(time.process_time() - processor, 1),
    }


def train(settings: RunSettings, seed: int, training: Pairs, validation: Pairs) -> Trained:
    """Train on `training` and keep the epoch (1-based) of best R@1 on `validation`."""
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
    """The weights of the epoch (1-based) with the best validation R@1 of pairs."""
    trained = nn.ModuleList([encoders] if labels is None else [encoders, labels])
    optimizer = torch.optim.Adam(trained.parameters(), lr=settings.lr, fused=True)
    best, weights, chosen = -1.0, encoders.state_dict(), 0
    for epoch in range(1, settings.epochs + 1):
        for rows in torch.randperm(len(training.label)).split(settings.batch):
            loss = _loss(encoders, labels, training.rows(rows), settings)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        reached = recalls(*_embedded(encoders, validation), validation.label)["pair"]["r1"]
        if reached > best:
            best, weights, chosen = reached, copy.deepcopy(encoders.state_dict()), epoch
    return weights, chosen


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
    """`recall_metrics` of the best right b for each a; a wrong b of equal score ranks first."""
    scores = a @ b.T
    right = {
        "pair": torch.eye(len(label), dtype=torch.bool),
        "class": label[:, None] == label,
    }
    return {kind: recall_metrics(_ranks(scores, mask)) for kind, mask in right.items()}


def _ranks(scores: Tensor, right: Tensor) -> Tensor:
    best = scores.masked_fill(~right, -torch.inf).amax(1, keepdim=True)
    return 1 + ((scores >= best) & ~right).sum(1)


@torch.no_grad()
def assignment(labels: SwappedLabels | None) -> dict[str, float] | None:
    """How the queue of a is assigned: the `error` of the classes' shares under these settings, and
    the Newton `steps` that solve it to `TOLERANCE`, from nothing. None where there is no queue."""
    if labels is None or not int(labels.images.queue.filled):
        return None
    log_p = queued_log_p(labels)
    own = transport(log_p, labels.eta, labels.rounds, labels.tolerance)
    return {
        "error": own.error,
        "steps": transport(log_p, labels.eta, tolerance=TOLERANCE).rounds,
    }


def queued_log_p(labels: SwappedLabels) -> Tensor:
    """`(n, n_classes)` class log-probabilities of what waits in the queue of a."""
    queue = labels.images.queue
    return labels.classes(queue.rows[: int(queue.filled)])
