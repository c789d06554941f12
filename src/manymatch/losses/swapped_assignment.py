"""SwAMP's loss: a sample should be predicted the classes that its partner was assigned."""

from __future__ import annotations

from torch import Tensor

from manymatch.losses.mean import mean


def swapped_assignment(log_p: Tensor, q: Tensor) -> Tensor:
    """Cross-entropy of predictions under assignments: `-mean_i sum_y q_iy log p_iy`.

    Args:
        log_p: `(N, n_classes)` log-probabilities of samples of one modality.
        q: `(N, n_classes)` assignments of their partners in the other, rows sum to 1; a constant.

    Relations:
        `SwappedLabels` makes both from embeddings, prototypes and queues, and adds the two
        directions.

    References:
        Kim, SwAMP: Swapped Assignment of Multi-Modal Pairs for Cross-Modal Retrieval,
        AISTATS 2023, eq. 4 (one of its two directions).
    """
    return -mean((q.detach() * log_p).sum(1))
