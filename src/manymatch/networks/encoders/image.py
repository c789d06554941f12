"""The image encoder: local features of regions, cells or pixels, and a global feature."""

from __future__ import annotations

from torch import Tensor, nn

from manymatch.batch.padding import PaddedRows
from manymatch.networks.encoders.cnn import CNN
from manymatch.networks.encoders.encoding import Encoding
from manymatch.networks.layers.linear import precise
from manymatch.networks.pooling.masked import zeroed


class ImageEncoder(nn.Module):
    """Local features, which are pooled and projected to the global feature.

    Args:
        local: `(n, R, F)` and their padding -> `(n, R, W)`, zero where padded.
        local_size: W.
        pool: `(n, R, W)` and their padding -> `(n, 1, W)`.
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

    def forward(self, features: Tensor, padding: PaddedRows) -> Encoding:
        """`features (n, R, F)` -> local `(n, R, W)`, globals `(n, D)`.

        With a CNN the features are R = S * S pixels, and the local features are the cells of its
        map.
        """
        if self.cnn is not None:
            features, padding = self.cnn(features)
        local = self.local(features, padding)

        def globals_() -> Tensor:
            return precise(self.project, self.pool(local, padding).squeeze(1))

        return Encoding(local, padding, globals_)


class EachRegion(nn.Module):
    """A layer over each region by itself: `(n, R, F)` -> `(n, R, W)`, zero where padded."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, features: Tensor, padding: PaddedRows) -> Tensor:
        return zeroed(self.layer(features), padding)
