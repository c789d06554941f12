"""The image encoder: local features of regions, cells or pixels, and a global feature."""

from __future__ import annotations

from torch import Tensor, nn

from manymatch.encoders.cnn import CNN
from manymatch.encoders.encoding import Encoding


class ImageEncoder(nn.Module):
    """Local features, which are pooled and projected to the global feature.

    Args:
        local: `(n, R, F)`, `(n, R)` mask -> `(n, R, W)`, zero where padded.
        local_size: W.
        pool: `(n, R, W)`, `(n, R)` mask -> `(n, 1, W)`.
        project: `(n, W)` -> `(n, D)`.
        cnn: a network that makes the features F of pixels.
    """

    def __init__(
        self,
        local: nn.Module,
        local_size: int,
        pool: nn.Module,
        project: nn.Module,
        cnn: CNN | None = None,
    ) -> None:
        super().__init__()
        self.local, self.local_size, self.pool, self.project = local, local_size, pool, project
        self.cnn = cnn

    def forward(self, features: Tensor, mask: Tensor) -> Encoding:
        """`features (n, R, F)`, `mask (n, R)` -> local `(n, R, W)`, globals `(n, D)`.

        With a CNN the features are R = S * S pixels, and the local features are the cells of its
        map.
        """
        if self.cnn is not None:
            features, mask = self.cnn(features, mask)
        local = self.local(features, mask)
        return Encoding(local, mask, self.project(self.pool(local, mask)[:, 0]))


class EachRegion(nn.Module):
    """A layer over each region by itself: `(n, R, F)`, `(n, R)` -> `(n, R, W)`."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        return self.layer(features).masked_fill(~mask[:, :, None], 0.0)
