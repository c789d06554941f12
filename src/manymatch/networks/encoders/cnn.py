"""A CNN in the training loop, which is fine-tuned: from stored pixels to a feature map.

The CNN computes from `features: pixels256` what a frozen CNN has stored as features (`features:
resnet152`), so that every method takes either.
"""

from collections import OrderedDict
from typing import Literal

from pydantic import model_validator
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from manymatch.batch.padding import PaddedRows, all_real
from manymatch.config.preset import Count
from manymatch.networks.backbones.normalised import Normalised
from manymatch.networks.encoders.pixels import PixelNetwork, PixelSettings, facts_of_trained

Backbone = Literal["resnet50", "resnet101", "resnet152", "resnext101_wsl"]
RANDOM = "random"


class CNNSettings(PixelSettings):
    """A CNN of a preset. The preset's `parameter_groups` freeze or slow the parameters whose name
    matches `cnn`."""

    backbone: Backbone = "resnet152"
    weights: str | None = None
    """A folder, file or hub name, as for the extraction of features with this backbone; null: the
    backbone's default; `random`: fresh weights."""
    crop: Count = 224
    """Side of the square that the network sees: in training a random square, else the middle one.
    A crop as large as the image is the whole image."""

    @model_validator(mode="after")
    def _norms_are_fixed(self) -> "CNNSettings":
        if self.checkpointing and not self.fixed_statistics:
            raise ValueError(
                "checkpointing needs fixed_statistics: batch norms would see each batch twice"
            )
        return self


class CNN(PixelNetwork):
    """`(n, S * S, 3)` pixels as bytes -> cells `(n, h * w, 2048)` of the network's last map."""

    width = 2048
    settings: CNNSettings
    network: Normalised

    def __init__(self, settings: CNNSettings) -> None:
        super().__init__()
        self.settings = settings
        # Weights stay in torch's own order: AdamP cannot read other orders.
        self.network = _network(settings.backbone, settings.weights, settings.checkpointing)

    def forward(self, features: Tensor) -> tuple[Tensor, PaddedRows]:
        """The cells, and that all of them are real.

        Raises:
            ConfigError: `features` are not pixels, or the pictures are smaller than a crop.
        """
        pixels = self.seen(features, self.settings.crop, self.network.mean.flatten())
        # A view of (n, S, S, 3) as (n, 3, S, S) has the channels last, the fastest memory format.
        cells = self.network(pixels.permute(0, 3, 1, 2))
        return cells, all_real(len(cells), cells.shape[1], cells.device)


class _Recomputed(nn.Sequential):
    """Stages whose blocks keep only their inputs for the backward pass, and compute the rest again.

    One block at a time: the 23 blocks of ResNeXt-101's third stage together would need 50 GB.
    """

    def forward(self, maps: Tensor) -> Tensor:
        for stage in self:
            for block in stage if isinstance(stage, nn.Sequential) else [stage]:
                maps = checkpoint(block, maps, use_reentrant=False, preserve_rng_state=False)
        return maps


def _network(backbone: Backbone, weights: str | None, checkpointing: bool) -> Normalised:
    # Imported only where a preset has a CNN: transformers takes seconds.
    from manymatch.networks.backbones import resnet, resnext

    source = resnext if backbone == "resnext101_wsl" else resnet
    if weights == RANDOM or facts_of_trained() is not None:
        stages = source.fresh(backbone)
    else:
        stages = source.pretrained(backbone, weights)
    if checkpointing:
        stages = _Recomputed(OrderedDict(stages.named_children()))
    return Normalised(stages, resnet.MEAN, resnet.STD)
