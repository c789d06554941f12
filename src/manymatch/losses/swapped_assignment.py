"""SwAMP's loss: a sample predicts the classes to which its partner is assigned."""

from __future__ import annotations

from torch import Tensor

from manymatch.losses.mean import mean


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
