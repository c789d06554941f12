"""SwAMP's pseudo-labels: prototypes of classes, queues, the swap, and the whole objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from manymatch.config.preset import Count, NonNegative, Positive
from manymatch.config.strict import Strict
from manymatch.layers.queue import Queue
from manymatch.losses.sinkhorn import assignments, class_potentials
from manymatch.losses.swapped_assignment import swapped_assignment


class LabelSettings(Strict):
    """The defaults are the paper's for images and captions; the paper states neither the rounds
    nor, for this task, eta."""

    weight: NonNegative = 1.0
    """The paper's lambda, of L_s beside the sum L_c; see `objective`. 0: L_c alone."""
    n_classes: Count = 1000
    queue: Annotated[int, Field(ge=0)] = 1280
    """Pairs held, the batch's among them; 0: the batch alone."""
    tau: Positive = 0.025
    """Temperature of the class probabilities."""
    eta: Positive = 5.0
    """Inverse regularisation of the assignment."""
    rounds: Count | None = 3
    """Of Sinkhorn; null where a tolerance is set."""
    tolerance: Annotated[float, Field(ge=1e-10)] | None = None
    """Instead of rounds: the error of the classes' shares to reach."""
    assignment: Literal["soft", "hard"] = "soft"
    """`hard`: each sample has its likeliest class alone."""

    @model_validator(mode="after")
    def _one_way_to_end(self) -> LabelSettings:
        if (self.rounds is None) == (self.tolerance is None):
            raise ValueError("set either rounds or tolerance, and the other to null")
        return self


def objective(
    contrastive: Mapping[str, Tensor],
    labels: SwappedLabels | None,
    images: Tensor,
    texts: Tensor,
) -> dict[str, Tensor]:
    """The terms of `L = L_c + lambda L_s`.

    L_c is the SUM over the pairs of the batch (eq. 1), L_s their mean (eq. 4). Both as means
    would weigh L_s with `m lambda` in a batch of m pairs.

    Args:
        contrastive: terms of L_c, each as the mean over the m pairs.
        labels: None where lambda is 0.
        images: `(m, D)`, L2-normalised; row by row a pair with `texts (m, D)`.

    References:
        Kim, SwAMP, AISTATS 2023, eq. 6.
    """
    terms = {name: len(texts) * term for name, term in contrastive.items()}
    if labels is not None:
        terms["swapped"] = labels.settings.weight * labels(images, texts)
    return terms


class SwappedLabels(nn.Module):
    """The loss `L_s` on paired embeddings.

    Class probabilities are `p(y | x) = softmax(P phi(x) / tau)` with L2-normalised prototypes P,
    the same for both modalities. The latest embeddings of each modality wait in a queue. Over the
    whole queue, the batch in front, samples are assigned to classes such that all classes are
    used equally; of that only the batch's rows are taken, and each is the target of its partner.

    Args:
        settings: see `LabelSettings`.
        size: of the embeddings.

    References:
        Kim, SwAMP, AISTATS 2023, section 3.
    """

    def __init__(self, settings: LabelSettings, size: int) -> None:
        super().__init__()
        self.settings = settings
        prototypes = functional.normalize(torch.randn(settings.n_classes, size), dim=1)
        self.prototypes = nn.Parameter(prototypes)
        self.images = Memory(settings, size)
        self.texts = Memory(settings, size)

    def forward(self, images: Tensor, texts: Tensor) -> Tensor:
        """`(m, D)` and `(m, D)`, L2-normalised, row by row a pair -> scalar."""
        prototypes = functional.normalize(self.prototypes, dim=1)
        log_p_images, log_p_texts = self._log_p(images, prototypes), self._log_p(texts, prototypes)
        q_images = self._labels(self.images, images, log_p_images, prototypes)
        q_texts = self._labels(self.texts, texts, log_p_texts, prototypes)
        return swapped_assignment(log_p_images, q_texts) + swapped_assignment(log_p_texts, q_images)

    @torch.no_grad()
    def _labels(self, memory: Memory, vectors: Tensor, log_p: Tensor, prototypes: Tensor) -> Tensor:
        """Labels of one modality's batch, which is put into the queue first."""
        waiting = self._log_p(memory.queue.push(vectors), prototypes)
        return memory.assign(log_p, waiting)

    def classes(self, vectors: Tensor) -> Tensor:
        """`(m, n_classes)` log-probabilities of the classes of embeddings `(m, D)`."""
        return self._log_p(vectors, functional.normalize(self.prototypes, dim=1))

    def _log_p(self, vectors: Tensor, prototypes: Tensor) -> Tensor:
        return (vectors @ prototypes.T / self.settings.tau).log_softmax(1)


class Memory(nn.Module):
    """What is kept of one modality from step to step, and the assignment of its samples."""

    def __init__(self, settings: LabelSettings, size: int) -> None:
        super().__init__()
        self.settings = settings
        self.queue = Queue(settings.queue, size)
        # The last potentials are near the next, which saves half the steps to a tolerance.
        remembered = settings.n_classes if settings.tolerance is not None else 0
        self.register_buffer("potentials", torch.zeros(remembered, dtype=torch.float64))
        self.potentials: Tensor

    def assign(self, batch: Tensor, waiting: Tensor) -> Tensor:
        """Labels of the rows of `batch (m, n_classes)` beside the waiting ones; both are log p."""
        settings, together = self.settings, torch.cat([batch, waiting])
        start = self.potentials if len(self.potentials) else None
        potentials, _ = class_potentials(
            together, settings.eta, settings.rounds, settings.tolerance, start
        )
        if start is not None:
            self.potentials.copy_(potentials)
        q = assignments(batch, settings.eta, potentials)
        if settings.assignment == "soft":
            return q
        return functional.one_hot(q.argmax(1), q.shape[1]).to(q.dtype)
