"""SwAMP's assignment of samples to classes: its part of a training step; what a tolerance costs.

    python benchmarks/sinkhorn.py              # 1,280 queued pairs x 1,000 classes
    python benchmarks/sinkhorn.py --device cuda

First, training steps of SwAMP as it is by default (128 images of 36 regions, a caption of 12 words
each, D=1024, Adam), the part of them that goes into assigning both modalities, from log p to
labels, and what plain log-domain loops would take. Then the assignment alone, in both sharp
settings, of the queue that a short training on synthetic pairs leaves: by rounds, as many of a
plain loop, and to a tolerance, cold and from the potentials of the queue a batch earlier. Medians.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from measuring import arguments
from torch import Tensor

from manymatch.batch.batch import Batch
from manymatch.batch.padding import padded_rows, padded_sequences
from manymatch.batch.vocabulary import Vocabulary
from manymatch.experiments.costs.timing import seconds
from manymatch.experiments.synthetic.pairs import make_pairs
from manymatch.experiments.synthetic.run import RunSettings, train
from manymatch.losses.optimal_transport import (
    assignments,
    class_potentials,
    marginal_error,
    transport,
)
from manymatch.losses.pseudo_labels import SwappedLabels
from manymatch.methods import build_method
from manymatch.methods.shared.method import Method
from manymatch.methods.swamp import SwAMP

PAIRS, REGIONS, WIDTH, WORDS, VOCABULARY = 128, 36, 2048, 12, 8000
SETTINGS = [(0.01, 20.0), (0.025, 5.0)]
TOLERANCE, MOST_ROUNDS, NAIVE_ROUNDS = 1e-4, 20_000, 20


def main() -> None:
    options = arguments(
        __doc__,
        device="cpu",
        threads=2,
        steps=(9, "times each is measured"),
        epochs=(5, "of the training on synthetic pairs"),
    )
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    _step(device, options.steps)
    for tau, eta in SETTINGS:
        settings = RunSettings(tau=tau, eta=eta, epochs=options.epochs)
        _alone(settings, device, options.steps)


def _step(device: torch.device, steps: int) -> None:
    """Whole training steps, and within them the seconds of every assignment."""
    words = Vocabulary([*Vocabulary.SPECIAL, *map(str, range(VOCABULARY))])
    method = build_method("swamp", {}, vocabulary=words, feature_width=WIDTH).train().to(device)
    assert isinstance(method, SwAMP) and method.labels is not None
    optimizer = torch.optim.Adam(method.parameters(), lr=2e-4)
    spent: list[float] = []
    method.labels.assign = _clocked(method.labels.assign, spent, device)
    wholes, parts = [], []
    queue = len(method.labels.images.queue.rows)
    for _ in range(queue // PAIRS + steps):  # the first fill the queue
        batch = _batch().to(device)
        spent.clear()
        wholes.append(seconds(partial(_train, method, batch, optimizer), device))
        parts.append(sum(spent))
    whole, part = (statistics.median(solution[-steps:]) for solution in (wholes, parts))
    plain = _naive_seconds(method.labels, device)
    print(f"{'a training step':32}{1000 * whole:9.1f} ms")
    print(f"{'of it the assignments':32}{1000 * part:9.1f} ms   {100 * part / whole:.1f}%")
    print(f"{f'plain loops of {NAIVE_ROUNDS} rounds':32}{1000 * plain:9.1f} ms")


def _clocked(
    assign: Callable[..., Tensor], spent: list[float], device: torch.device
) -> Callable[..., Tensor]:
    def clocked(*arguments: Any) -> Tensor:
        labels: list[Tensor] = []
        spent.append(seconds(lambda: labels.append(assign(*arguments)), device))
        return labels[0]

    return clocked


def _train(method: Method, batch: Batch, optimizer: torch.optim.Optimizer) -> None:
    images, texts = method.encode_images(batch), method.encode_texts(batch)
    terms = method.loss(images, texts, batch)
    optimizer.zero_grad()
    torch.stack(list(terms.values())).sum().backward()
    torch.nn.utils.clip_grad_norm_(method.parameters(), 2.0)
    optimizer.step()


def _batch() -> Batch:
    ids = list(map(str, range(PAIRS)))
    return Batch(
        image_ids=ids,
        caption_ids=ids,
        image_index=torch.arange(PAIRS),
        features=torch.randn(PAIRS, REGIONS, WIDTH).relu(),
        region_padding=padded_rows(torch.ones(PAIRS, REGIONS, dtype=torch.bool)),
        words=torch.randint(len(Vocabulary.SPECIAL), VOCABULARY, (PAIRS, WORDS)),
        word_padding=padded_sequences(torch.full((PAIRS,), WORDS), WORDS),
    )


def _naive_seconds(labels: SwappedLabels, device: torch.device) -> float:
    """Of both modalities' queues, once each."""
    with torch.no_grad():
        queues = [labels.classes(memory.queue.rows) for memory in (labels.images, labels.texts)]
    eta = labels.settings.eta
    return sum(seconds(partial(naive, log_p, eta, NAIVE_ROUNDS), device) for log_p in queues)


@torch.no_grad()
def naive(log_p: Tensor, eta: float, rounds: int) -> Tensor:
    """Scale columns to N / n_classes and rows to 1, as the formula says it."""
    plan, share = eta * log_p, math.log(log_p.shape[0] / log_p.shape[1])
    for _ in range(rounds):
        plan = plan - plan.logsumexp(0, keepdim=True) + share
        plan = plan - plan.logsumexp(1, keepdim=True)
    return plan.exp()


def _alone(settings: RunSettings, device: torch.device, times: int) -> None:
    """One queue of a trained model, by all ways to solve it."""
    eta = settings.eta
    before, log_p = _queues(settings, device)
    print(f"\ntau {settings.tau:g}, eta {eta:g}, {len(log_p):,} x {log_p.shape[1]:,}")

    def tell(name: str, solve: Callable[[], Tensor]) -> None:
        taken = statistics.median(seconds(solve, device) for _ in range(times))
        error = float(marginal_error(solve()))
        print(f"  {name:30}{1000 * taken:9.1f} ms   error of a class's share {error:.1e}")

    for rounds in (3, NAIVE_ROUNDS):
        tell(f"{rounds} rounds", partial(_solved, log_p, eta, rounds))
        tell(f"{rounds} rounds, plain loop", partial(naive, log_p, eta, rounds))
    near = transport(before, eta, tolerance=TOLERANCE).potentials
    for name, start in (("cold", None), ("warm", near)):
        steps = transport(log_p, eta, tolerance=TOLERANCE, potentials=start).rounds
        tell(f"{steps} Newton steps, {name}", partial(_solved, log_p, eta, None, TOLERANCE, start))
    print(f"  rounds to the same tolerance: {_rounds_needed(log_p, eta)}")


def _solved(log_p: Tensor, eta: float, *ends: Any) -> Tensor:
    return assignments(log_p, eta, class_potentials(log_p, eta, *ends)[0])


def _queues(settings: RunSettings, device: torch.device) -> tuple[Tensor, Tensor]:
    """Class log-probabilities of a full queue, and of the one a batch later."""
    training, validation, _ = make_pairs(0)
    trained = train(settings, 0, training, validation)
    assert trained.labels is not None
    size = settings.queue
    with torch.no_grad():
        vectors, _ = trained.encoders(training.rows(slice(size + settings.batch)))
        log_p = trained.labels.classes(vectors).to(device)
    return log_p[settings.batch :], log_p[:size]


def _rounds_needed(log_p: Tensor, eta: float, at_once: int = 100) -> str:
    """In double precision: single precision does not get there."""
    exact, potentials = log_p.double(), None
    for done in range(at_once, MOST_ROUNDS + 1, at_once):
        solution = transport(exact, eta, at_once, potentials=potentials)
        if solution.error <= TOLERANCE:
            return f"{done:,}"
        potentials = solution.potentials
    return f"more than {MOST_ROUNDS:,} (error then {solution.error:.1e})"


if __name__ == "__main__":
    main()
