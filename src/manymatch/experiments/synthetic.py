"""Experiments on synthetic pairs (SwAMP, appendix E): a run trains two small networks.

A pair is two points in two generated modalities, with a class that no loss sees. A class is a
Gaussian in R^5. A pair is one draw from the Gaussian; two random networks, one for each modality,
map the draw to R^100. Each network has two hidden layers of 50 units. Each of 20 classes has 500
pairs. All pairs are shuffled; 7,000 are for training, 1,000 for validation and 2,000 for the test.

The appendix leaves three choices open. Ours are: the Gaussians have unit covariance and means from
N(0, 3^2 I), so that classes hardly overlap; hidden units are ReLUs; weights are drawn from
N(0, 1 / inputs) and biases from N(0, 1).
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from manymatch.batch.parallel_map import single_core
from manymatch.config.preset import Count, Positive
from manymatch.config.strict import validate
from manymatch.evaluation.protocols.recall import ranks_of_relevant
from manymatch.evaluation.ranking.metrics import recall_metrics
from manymatch.experiments.engine import Experiment, Numbers, Row
from manymatch.experiments.fitting import fit
from manymatch.experiments.grid import ComparedPlan, Point
from manymatch.losses.optimal_transport import transport
from manymatch.losses.pseudo_labels import LabelSettings, SwappedLabels, objective
from manymatch.losses.triplets import triplet
from manymatch.model.scores import checked
from manymatch.results.experiments import Relevance, SyntheticExperiment
from manymatch.util.code_hash import code_hash


class RunSettings(LabelSettings):
    """The settings of one training. `weight: 0` trains with the contrastive loss alone.

    The defaults are those of SwAMP, appendix E. The data are those of `make_pairs`.
    """

    tau: Positive = 0.01
    eta: Positive = 20.0
    margin: Positive = 0.1
    size: Count = 5
    """The size of the embeddings."""
    hidden: Count = 50
    """The units of each of the two hidden layers of an encoder."""
    epochs: Count = 100
    contrastive_epochs: Annotated[int, Field(ge=0)] = 0
    """The warm start: epochs with the contrastive loss alone, before `epochs`."""
    batch: Count = 128
    lr: Positive = 1e-3


class SyntheticPlan(ComparedPlan):
    """The settings of a point are those of `RunSettings`."""

    experiment: Literal["synthetic"]
    published: dict[str, dict[Relevance, float]] = Field(default_factory=dict)
    """R@1 that a paper prints, for each point."""

    def labels_mentioned(self) -> list[str]:
        return [*super().labels_mentioned(), *self.published]


class SyntheticPairs(Experiment[SyntheticPlan, RunSettings]):
    """Writes `reports/synthetic/NAME.json`."""

    kind = "synthetic"
    plan_type = SyntheticPlan

    def settings(self, point: Point, seed: int) -> RunSettings:
        return validate(RunSettings, {**self.plan.set, **point.settings}, "settings")

    def inputs(self, settings: RunSettings) -> dict[str, Any]:
        return settings.model_dump(mode="json")

    def code(self, settings: RunSettings) -> str:
        return code_hash(f"{__name__}:run")

    def run(self, settings: RunSettings, seed: int, folder: Path) -> Numbers:
        # A sharp softmax makes many subnormal numbers, which slow a CPU down several times.
        torch.set_flush_denormal(True)
        try:
            with single_core():  # sums depend on the number of cores that share them
                return run(settings, seed)
        finally:
            torch.set_flush_denormal(False)

    def headline(self, numbers: Numbers) -> str:
        return f"R@1 of pairs {numbers['pair']['r1']:.1f}"

    def result(self, rows: Sequence[Row]) -> SyntheticExperiment:
        stated = {"about", "baseline", "published", "seeds"}
        result = {
            "name": self.name,
            **self.plan.model_dump(mode="json", include=stated),
            "points": [row.as_json() for row in rows],
        }
        return SyntheticExperiment.model_validate(result)


CLASSES, LATENT, UNITS, WIDTH, PAIRS_A_CLASS = 20, 5, 50, 100, 500
HIDDEN_LAYERS = 2
TRAIN, VALIDATION = 7000, 1000
SPREAD = 3.0


class Pairs(NamedTuple):
    """n pairs: the points `a (n, 100)` and `b (n, 100)`, and the classes `label (n,)`."""

    a: Tensor
    b: Tensor
    label: Tensor

    def rows(self, rows: slice | Tensor) -> "Pairs":
        return Pairs(self.a[rows], self.b[rows], self.label[rows])


def make_pairs(seed: int) -> tuple[Pairs, Pairs, Pairs]:
    """Training, validation and test pairs. The seed decides the classes, networks and draws."""
    generator = torch.Generator().manual_seed(seed)
    means = SPREAD * torch.randn(CLASSES, 1, LATENT, generator=generator)
    draws = torch.randn(CLASSES, PAIRS_A_CLASS, LATENT, generator=generator)
    points = (means + draws).flatten(0, 1)
    label = torch.arange(CLASSES).repeat_interleave(PAIRS_A_CLASS)
    order = torch.randperm(len(points), generator=generator)
    pairs = Pairs(_mapped(points, generator), _mapped(points, generator), label).rows(order)
    test = TRAIN + VALIDATION
    return pairs.rows(slice(TRAIN)), pairs.rows(slice(TRAIN, test)), pairs.rows(slice(test, None))


def _mapped(points: Tensor, generator: torch.Generator) -> Tensor:
    """`points (n, 5)` mapped to `(n, 100)` by a new random network."""
    for _ in range(HIDDEN_LAYERS):
        points = _layer(points, UNITS, generator).relu()
    return _layer(points, WIDTH, generator)


def _layer(inputs: Tensor, units: int, generator: torch.Generator) -> Tensor:
    weights = torch.randn(inputs.shape[1], units, generator=generator) / inputs.shape[1] ** 0.5
    return inputs @ weights + torch.randn(units, generator=generator)


class Encoders(nn.Module):
    """A network with two hidden layers for each modality. Embeddings have length 1."""

    def __init__(self, hidden: int, size: int) -> None:
        super().__init__()
        self.a, self.b = (
            nn.Sequential(
                nn.Linear(WIDTH, hidden),
                nn.ReLU(),
                nn.Linear(hidden, hidden),
                nn.ReLU(),
                nn.Linear(hidden, size),
            )
            for _ in "ab"
        )

    def forward(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        return normalize(self.a(pairs.a), dim=1), normalize(self.b(pairs.b), dim=1)

    @torch.no_grad()
    def recalls(self, pairs: Pairs) -> dict[str, dict[str, float]]:
        """The `recalls` of the pairs."""
        a, b = self(pairs)
        return recalls(a, b, pairs.label)


class Trained(NamedTuple):
    """Encoders of the best `epoch` (1-based), and the labels after the last epoch."""

    encoders: Encoders
    labels: SwappedLabels | None
    epoch: int


def run(settings: RunSettings, seed: int) -> dict[str, Any]:
    """Draw the data, train, and test the epoch with the best validation R@1. The seed decides the
    data, the initial weights and the batches.

    Returns:
        `pair` and `class`: the `recalls` of the test pairs; `epoch` (1-based); `assignment`, see
        there; `seconds` and `processor_seconds`.
    """
    wall, processor = time.perf_counter(), time.process_time()
    training, validation, test = make_pairs(seed)
    trained = train(settings, seed, training, validation)
    return {
        **trained.encoders.recalls(test),
        "epoch": trained.epoch,
        "assignment": assignment(trained.labels),
        "seconds": round(time.perf_counter() - wall, 1),
        "processor_seconds": round(time.process_time() - processor, 1),
    }


def train(settings: RunSettings, seed: int, training: Pairs, validation: Pairs) -> Trained:
    """Train on `training`, and keep the epoch with the best R@1 of pairs on `validation`."""
    torch.manual_seed(seed)
    encoders = Encoders(settings.hidden, settings.size)
    labels = settings.loss(settings.size)

    def losses(labels: SwappedLabels | None) -> Iterator[dict[str, Tensor]]:
        for rows in torch.randperm(len(training.label)).split(settings.batch):
            yield loss(encoders, labels, training.rows(rows), settings.margin)

    def r1() -> float:
        return encoders.recalls(validation)["pair"]["r1"]

    if epochs := settings.contrastive_epochs:
        fit(encoders, None, lambda _: losses(None), r1, epochs=epochs, lr=settings.lr)
    epochs = settings.epochs
    epoch, _ = fit(encoders, labels, lambda _: losses(labels), r1, epochs=epochs, lr=settings.lr)
    return Trained(encoders, labels, epoch)


def loss(
    encoders: Encoders, labels: SwappedLabels | None, batch: Pairs, margin: float
) -> dict[str, Tensor]:
    """The terms of SwAMP's objective."""
    a, b = encoders(batch)
    contrastive = {"triplet": triplet(a @ b.T, torch.arange(len(a)), margin)}
    return objective(contrastive, labels, a, b)


def recalls(a: Tensor, b: Tensor, label: Tensor) -> dict[str, dict[str, float]]:
    """`recall_metrics` of b for queries a, by the best positive of each query.

    The positive of `pair` is the partner, the positives of `class` are all b of the same class. A
    negative with an equal score ranks before the positive. A score that is not finite is a
    `DivergenceError`.
    """
    scores = checked(a @ b.T)
    positive = {"pair": torch.eye(len(label), dtype=torch.bool), "class": label[:, None] == label}
    return {
        kind: recall_metrics(ranks_of_relevant(scores, mask).ranks[:, 0])
        for kind, mask in positive.items()
    }


@torch.no_grad()
def assignment(labels: SwappedLabels | None) -> dict[str, float] | None:
    """How well the queue of a is assigned to classes: `error`, the largest error of a class's share
    with the settings of `labels`, in samples. None without a queue."""
    if labels is None or not int(labels.images.queue.filled):
        return None
    log_p, settings = queued_log_p(labels), labels.settings
    return {"error": transport(log_p, settings.eta, settings.rounds, settings.tolerance).error}


def queued_log_p(labels: SwappedLabels) -> Tensor:
    """`(n, n_classes)` class log-probabilities of the samples in the queue of a."""
    queue = labels.images.queue
    return labels.classes(queue.rows[: int(queue.filled)])
