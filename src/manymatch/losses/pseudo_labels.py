"""SwAMP's pseudo-labels: prototypes of classes, queues, the swap, and the whole objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from manymatch.batch.shared_rows import share_rows
from manymatch.config.preset import Count, NonNegative, Positive
from manymatch.config.strict import Strict
from manymatch.losses.contrastive import mean
from manymatch.losses.optimal_transport import assignments, class_potentials
from manymatch.similarities.vectors import unit

Reduction = Literal["sum", "mean"]


def objective(
    contrastive: Mapping[str, Tensor],
    labels: SwappedLabels | None,
    images: Tensor,
    texts: Tensor,
    reduction: Reduction = "sum",
) -> dict[str, Tensor]:
    """The terms of `L = L_c + lambda L_s`.

    L_c is the SUM over the pairs of the batch (eq. 1), L_s their mean (eq. 4). If both are means,
    L_s has the weight `m lambda` in a batch of m pairs.

    Args:
        contrastive: the terms of L_c, each as a mean over the m pairs.
        labels: the loss L_s with its weight lambda; None where lambda is 0.
        images: `(m, D)`, L2-normalised.
        texts: `(m, D)`, L2-normalised; row j is the pair of row j of `images`.
        reduction: of L_c.

    References:
        Kim, SwAMP, AISTATS 2023, eq. 6.
    """
    pairs = len(texts) if reduction == "sum" else 1
    terms = {name: pairs * term for name, term in contrastive.items()}
    if labels is not None:
        terms["swapped"] = labels.settings.weight * labels(images, texts)
    return terms


class LabelSettings(Strict):
    """The defaults are the paper's for images and captions. The paper states neither the rounds
    nor, for this task, eta."""

    weight: NonNegative = 1.0
    """The paper's lambda: weight of L_s beside L_c, see `objective`. 0: L_c alone."""
    n_classes: Count = 1000
    """Number of prototypes."""
    queue: Annotated[int, Field(ge=0)] = 1280
    """Pairs in the queue, with those of the batch; 0: the batch alone."""
    tau: Positive = 0.025
    """Temperature of the class probabilities."""
    eta: Positive = 5.0
    """Inverse regularisation of the assignment."""
    rounds: Count | None = 3
    """Rounds of Sinkhorn; null where a tolerance is set."""
    tolerance: Annotated[float, Field(ge=1e-10)] | None = None
    """The error of the classes' shares to reach, instead of rounds."""
    assignment: Literal["soft", "hard"] = "soft"
    """`hard`: each sample has only its likeliest class."""

    @model_validator(mode="after")
    def _rounds_or_tolerance(self) -> LabelSettings:
        if (self.rounds is None) == (self.tolerance is None):
            raise ValueError("set either rounds or tolerance, and the other to null")
        return self

    def loss(self, size: int) -> SwappedLabels | None:
        """The loss L_s on embeddings of `size` dimensions; None where its weight is 0."""
        return SwappedLabels(self, size) if self.weight else None


class SwappedLabels(nn.Module):
    """The loss L_s on paired embeddings.

    The class probabilities are `p(y | x) = softmax(P phi(x) / tau)` with L2-normalised prototypes
    P, the same for both modalities. A queue keeps the latest embeddings of each modality. The whole
    queue, with the batch in front, is assigned to classes so that all classes are used equally.
    Only the batch's rows of this assignment are used: each is the target of its pair's other side.

    Args:
        settings: classes, queue and assignment.
        size: D of the embeddings.

    Relations:
        `swapped_assignment` is one of its two directions; `sinkhorn` is the assignment.

    References:
        Kim, SwAMP, AISTATS 2023, section 3.
    """

    def __init__(self, settings: LabelSettings, size: int) -> None:
        super().__init__()
        self.settings, count = settings, settings.n_classes
        self.prototypes = nn.Parameter(unit(torch.randn(count, size)))
        # The last potentials are near the next ones, which saves half the steps to a tolerance.
        remembered = count if settings.tolerance is not None else 0
        self.images = Memory(settings.queue, size, remembered)
        self.texts = Memory(settings.queue, size, remembered)

    def forward(self, images: Tensor, texts: Tensor) -> Tensor:
        """`images (m, D)`, `texts (m, D)`, L2-normalised, row by row a pair -> scalar."""
        prototypes = unit(self.prototypes)
        log_p_images, log_p_texts = self._log_p(images, prototypes), self._log_p(texts, prototypes)
        q_images = self._labels(self.images, images, log_p_images, prototypes)
        q_texts = self._labels(self.texts, texts, log_p_texts, prototypes)
        return swapped_assignment(log_p_images, q_texts) + swapped_assignment(log_p_texts, q_images)

    def classes(self, vectors: Tensor) -> Tensor:
        """`(m, n_classes)` log-probabilities of the classes of embeddings `(m, D)`."""
        return self._log_p(vectors, unit(self.prototypes))

    def _log_p(self, vectors: Tensor, prototypes: Tensor) -> Tensor:
        def log_softmax(rows: Tensor) -> Tensor:
            return (rows @ prototypes.T / self.settings.tau).log_softmax(1)

        return share_rows(log_softmax, vectors)

    @torch.no_grad()
    def _labels(self, memory: Memory, vectors: Tensor, log_p: Tensor, prototypes: Tensor) -> Tensor:
        """Labels `(m, n_classes)` of one modality's batch, which enters the queue first."""
        settings, queued = self.settings, self._log_p(memory.queue.push(vectors), prototypes)
        every = torch.cat([log_p, queued])
        start = memory.potentials if len(memory.potentials) else None
        potentials, _ = class_potentials(
            every, settings.eta, settings.rounds, settings.tolerance, start
        )
        if start is not None:
            memory.potentials.copy_(potentials)
        q = assignments(log_p, settings.eta, potentials)
        if settings.assignment == "soft":
            return q
        return torch.zeros_like(q).scatter(1, q.argmax(1, keepdim=True), 1.0)


class Memory(nn.Module):
    """What one modality keeps from step to step: its queue, and the classes' last potentials."""

    def __init__(self, queue: int, size: int, remembered: int) -> None:
        super().__init__()
        self.queue = Queue(queue, size)
        self.register_buffer("potentials", torch.zeros(remembered, dtype=torch.float64))
        self.potentials: Tensor


def swapped_assignment(log_p: Tensor, q: Tensor) -> Tensor:
    """Cross-entropy of predictions under assignments: `-mean_i sum_y q_iy log p_iy`.

    Args:
        log_p: `(N, n_classes)` log-probabilities of the samples of one modality.
        q: `(N, n_classes)` assignments of their partners in the other modality; rows sum to 1. The
            loss has no gradient with respect to q.

    Relations:
        `SwappedLabels` computes both from embeddings, prototypes and queues, and adds the two
        directions.

    References:
        Kim, SwAMP: Swapped Assignment of Multi-Modal Pairs for Cross-Modal Retrieval,
        AISTATS 2023, eq. 4 (one of its two directions).
    """
    return -mean((q.detach() * log_p).sum(1))


class Queue(nn.Module):
    """Up to `size` rows of `width`. The rows are part of the state dict, so that a resumed run
    continues with the same rows."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(size, width))
        self.register_buffer("filled", torch.zeros((), dtype=torch.int64))
        self.rows: Tensor
        self.filled: Tensor
        # A copy on the host, read before the first step, when a warm start has filled the buffers:
        # reading it from the device in every step would wait for the device.
        self._count: int | None = None

    @torch.no_grad()
    def push(self, new: Tensor) -> Tensor:
        """Put the rows `new (m, width)` in front.

        The first `size` rows are kept.

        Returns:
            The older rows that are kept, `(<= size - m, width)`.
        """
        size = len(self.rows)
        count = int(self.filled) if self._count is None else self._count
        self._count = min(size, count + len(new))
        self.rows = torch.cat([new.detach(), self.rows])[:size]
        self.filled.fill_(self._count)
        return self.rows[len(new) : self._count]

    def _load_from_state_dict(self, *arguments: Any, **options: Any) -> None:
        super()._load_from_state_dict(*arguments, **options)
        self._count = None
