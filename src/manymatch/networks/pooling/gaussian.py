"""A Gaussian for each sample, which PCME and MSRM predict instead of a vector."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from manymatch.networks.layers.linear import glorot_linear
from manymatch.networks.pooling.global_pooling import Mask
from manymatch.networks.pooling.set_modules import HeadAttention, PIENet, joint_attention
from manymatch.similarities.vectors import full_precision, unit


class Gaussian(NamedTuple):
    """Diagonal Gaussians: `mean (n, D)`, L2-normalised, and `log_variance (n, D)`.

    `attention (n, 1, R)` is the weight of each input in the mean.
    """

    mean: Tensor
    log_variance: Tensor
    attention: Tensor


class GaussianHead(nn.Module):
    """PIE-Net's vector as the mean; a second attention gives the log variance.

    `mean = L2(LN(global + sigmoid(FC(attended))))`, `log var = FC(attended') + FC_2(global)`.

    Args:
        width: W, size of the inputs.
        size: D.
        hidden: width inside both attentions; None: half of `width`.
        log_variance: approximate log variance at the start.
        equal_variances: whether every log variance starts at `log_variance` exactly. Otherwise the
            fresh weights of the two layers add a random function of the input.

    References:
        Chun et al., Probabilistic Embeddings for Cross-Modal Retrieval (PCME), CVPR 2021,
        section 3.2.
    """

    def __init__(
        self,
        width: int,
        size: int,
        hidden: int | None = None,
        log_variance: float = 0.0,
        equal_variances: bool = False,
    ) -> None:
        super().__init__()
        self.mean = PIENet(width, size, 1, hidden)
        self.attention = HeadAttention(width, 1, hidden)
        self.of_attended, self.of_global = glorot_linear(width, size), glorot_linear(size, size)
        nn.init.constant_(self.of_global.bias, log_variance)
        if equal_variances:
            nn.init.zeros_(self.of_attended.weight)
            nn.init.zeros_(self.of_global.weight)

    def forward(self, local: Tensor, mask: Mask, globals: Tensor) -> Gaussian:
        """`local (n, R, W)`, `mask (n, R)`, `globals (n, D)` -> `Gaussian`."""
        of_mean, (attended, _) = joint_attention(local, mask, self.mean.attention, self.attention)
        means = self.mean.elements(*of_mean, globals)
        log_variance = self.of_attended(attended.squeeze(1)) + self.of_global(globals)
        mean = unit(means.vectors.squeeze(1))
        return Gaussian(mean, full_precision(log_variance), means.attention)


def samples(mean: Tensor, log_variance: Tensor, noise: Tensor) -> Tensor:
    """Samples `mean + std noise`, differentiable in the Gaussian.

    Args:
        mean, log_variance: `(n, D)`.
        noise: standard normal, `(n, J, D)`, or `(J, D)` for all samples alike.

    Returns:
        `(n, J, D)`.
    """
    return mean[:, None] + (log_variance / 2).exp()[:, None] * noise


def kl_to_standard(mean: Tensor, log_variance: Tensor) -> Tensor:
    """`KL(N(mean, var) || N(0, 1))`: `(n, D)`, `(n, D)` -> `(n,)`, summed over dimensions."""
    return (mean.square() + log_variance.exp() - 1 - log_variance).sum(1) / 2
