"""Networks in the training loop that read stored pixels: crops, augmentation, frozen statistics."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from manymatch.config.preset import Probability
from manymatch.config.strict import Strict
from manymatch.util.errors import ConfigError

Share = Annotated[float, Field(gt=0.0, le=1.0)]
_DRAWS = 10
_ERASED = (0.02, 1 / 3)
"""The smallest and the largest share of a picture that is erased."""
_FLATTEST = 0.3
"""The smallest height of an erased rectangle over its width, and width over its height."""


Mix = Callable[[Tensor], Tensor]


class PixelSettings(Strict):
    """What a network sees of stored pixels in training, and how the network is trained."""

    crop_area: tuple[Share, Share] | None = None
    """The smallest and the largest share of the picture that a training crop covers, see
    `resized_crops`. Null: the random squares have as many pixels as those of tests."""
    random_crops: bool = True
    """In training the network sees a random square, mirrored half of the time. False: training sees
    the middle squares, as tests do."""
    erasing: Probability = 0.0
    """The share of training pictures in which a rectangle is erased, see `erased` (PCME: 0.2)."""
    fixed_statistics: bool = False
    """Batch norms keep their first statistics, in training too."""
    checkpointing: bool = False
    """Activations inside the network's stages or layers are computed twice instead of kept: less
    memory."""

    @model_validator(mode="after")
    def _crops_fit(self) -> Self:
        if self.crop_area is not None and self.crop_area[0] > self.crop_area[1]:
            raise ValueError("crop_area: the smallest share is first")
        if self.crop_area is not None and not self.random_crops:
            raise ValueError("crop_area: crops of random size, but random_crops is false")
        return self


class PixelNetwork(nn.Module):
    """A network in the training loop: `(n, S * S, 3)` pixels as bytes -> local features.

    Attributes:
        width: F, the size of local features.
    """

    settings: PixelSettings
    width: int
    network: nn.Module
    _mix: Mix | None = None

    def seen(self, features: Tensor, side: int, colour: Tensor) -> Tensor:
        """The pictures `(n, side, side, 3)` that the network sees; `colour (3,)`: of what is
        erased.

        Raises:
            ConfigError: `features` are not pixels, or the pictures are smaller than `side`.
        """
        settings, pixels = self.settings, square(features)
        if self.training and settings.crop_area is not None:
            pixels = resized_crops(pixels, side, settings.crop_area)
        else:
            pixels = cropped(pixels, side, random=self.training and settings.random_crops)
        if self.training and settings.erasing:
            pixels = erased(pixels, settings.erasing, colour)
        if self._mix is not None:
            pixels = self._mix(pixels)
        return pixels

    @contextmanager
    def mixed_by(self, mix: Callable[..., tuple[Tensor, Tensor]]) -> Iterator[list[Tensor]]:
        """Within the block the network sees pictures that `mix` makes of those of a batch.

        Args:
            mix: takes pixels `(n, S * S, 3)` in float32, a mask of all, and `side` S; gives pixels
                and the own share of each image.

        Yields:
            a list of the own shares, one entry a batch.
        """
        shares: list[Tensor] = []

        def mixed(pixels: Tensor) -> Tensor:
            rows = pixels.float().flatten(1, 2)
            real = torch.ones(rows.shape[:2], dtype=torch.bool, device=rows.device)
            rows, own_share = mix(rows, real, side=pixels.shape[1])
            shares.append(own_share)
            return rows.view(pixels.shape)

        self._mix = mixed
        try:
            yield shares
        finally:
            self._mix = None

    def train(self, mode: bool = True) -> Self:
        super().train(mode)
        if self.settings.fixed_statistics:
            for module in self.network.modules():
                if isinstance(module, _BatchNorm):
                    module.eval()
        return self


def square(features: Tensor) -> Tensor:
    """Pixels row by row, `(n, S * S, 3)`, as pictures `(n, S, S, 3)`."""
    count, cells, width = features.shape
    side = math.isqrt(cells)
    if features.dtype != torch.uint8 or width != 3 or side * side != cells:
        raise ConfigError(
            f"a CNN or backbone reads pixels, but these features are {cells} of size {width}. "
            "Set the preset's features to pixels256, pixels512 or an extraction of kind pixels."
        )
    return features.view(count, side, side, 3)


def cropped(pixels: Tensor, side: int, random: bool) -> Tensor:
    """Squares `(n, side, side, 3)` of pictures `(n, S, S, 3)`: the middle squares, or `random` a
    square anywhere in each picture, mirrored half of the time.

    Raises:
        ConfigError: the pictures are smaller than `side`.
    """
    count, whole = pixels.shape[:2]
    if side > whole:
        raise ConfigError(
            f"cnn.crop: {side} pixels, but pictures have {whole}. Set at most {whole}."
        )
    if not random:
        start = (whole - side) // 2
        return pixels[:, start : start + side, start : start + side]
    device = pixels.device
    corner = torch.randint(whole - side + 1, (2, count, 1), device=device)
    rows, columns = corner + torch.arange(side, device=device)
    mirrored = torch.rand(count, 1, device=device) < 0.5
    columns = torch.where(mirrored, columns.flip(1), columns)
    picture = torch.arange(count, device=device)[:, None, None]
    return pixels[picture, rows[:, :, None], columns[:, None]]


def resized_crops(pixels: Tensor, side: int, area: tuple[float, float]) -> Tensor:
    """Crops `(n, side, side, 3)` of pictures `(n, S, S, 3)`, in float32: each of a size, shape and
    place drawn at random, resized bilinearly, and mirrored half of the time.

    The share of the picture is uniform in `area`, the logarithm of width over height in
    log 3/4 .. log 4/3. The first of ten draws that fits in the picture counts, else the whole
    picture. No crop is reduced by more than S / side, so that nothing is smoothed.

    References:
        torchvision's `RandomResizedCrop`, which the released code of DivE uses.
    """
    count, whole = pixels.shape[:2]
    draws = torch.rand(4, _DRAWS, count, device=pixels.device)
    sizes, fits = _first_that_fits(draws[:2], area, 4 / 3, whole, whole)
    sizes = torch.where(fits, sizes.clamp_min(1), whole)
    starts = (draws[2:, 0] * (whole - sizes + 1)).floor()
    steps = (torch.arange(side, device=pixels.device) + 0.5) / side
    places = (steps * sizes[..., None] - 0.5).clamp_min(0)  # within the crop, (2, n, side)
    rows, columns = starts[..., None] + torch.minimum(places, sizes[..., None] - 1)
    mirrored = torch.rand(count, 1, device=pixels.device) < 0.5
    columns = torch.where(mirrored, columns.flip(1), columns)
    grid = torch.stack(
        [columns[:, None].expand(-1, side, -1), rows[..., None].expand(-1, -1, side)], -1
    )
    grid = (2 * grid + 1) / whole - 1
    planes = pixels.permute(0, 3, 1, 2).float()
    crops = functional.grid_sample(planes, grid, padding_mode="border", align_corners=False)
    return crops.permute(0, 2, 3, 1)


def erased(pixels: Tensor, probability: float, colour: Tensor) -> Tensor:
    """Pictures `(n, S, S, 3)` in float32, in each of which, with the `probability`, a rectangle has
    the `colour (3,)`.

    The share of the picture is uniform in .02 .. 1/3, the logarithm of height over width in log .3
    .. log 1/.3. The first of ten draws that fits in the picture counts, else nothing is erased.

    References:
        Zhong et al., Random Erasing Data Augmentation, AAAI 2020, as in PCME's released code, where
        the colour is 0 after normalisation.
    """
    count, whole = pixels.shape[:2]
    draws = torch.rand(2, _DRAWS, count, device=pixels.device)
    sizes, fits = _first_that_fits(draws, _ERASED, _FLATTEST, whole, whole - 1)
    sizes = sizes.flip(0)
    wanted, *places = torch.rand(3, count, device=pixels.device)
    starts = (torch.stack(places) * (whole - sizes + 1)).floor()[..., None]
    at = torch.arange(whole, device=pixels.device)
    rows, columns = (at >= starts) & (at < starts + sizes[..., None])
    inside = rows[:, :, None] & columns[:, None] & (fits & (wanted < probability))[:, None, None]
    return torch.where(inside[..., None], colour, pixels.float())


def _first_that_fits(
    draws: Tensor, area: tuple[float, float], stretch: float, whole: int, most: int
) -> tuple[Tensor, Tensor]:
    """The first height and width `(2, n)` of which both are at most `most`, and whether there is
    one `(n,)`.

    Of the uniform `draws (2, draws, n)`, the first is the share of a picture of side `whole`, in
    `area`, the second the logarithm of width over height, in +-log `stretch`.
    """
    share = area[0] + (area[1] - area[0]) * draws[0]
    shape = torch.exp(math.log(stretch) * (2 * draws[1] - 1))
    sizes = (torch.stack([(share / shape).sqrt(), (share * shape).sqrt()]) * whole).round()
    fits = (sizes <= most).all(0)
    first = fits.to(torch.uint8).argmax(0, keepdim=True)
    return sizes.gather(1, first.expand(2, 1, -1))[:, 0], fits.any(0)


_TRAINED: ContextVar[Mapping[str, Any] | None] = ContextVar("facts of a trained model")


@contextmanager
def structure_only(facts: Mapping[str, Any]) -> Iterator[None]:
    """Networks that are built within the block do not load published weights.

    A trained model holds all its weights. To load the model, only the structure of its networks is
    needed, and not the files or downloads of the published weights.

    Args:
        facts: the content of `model.json`.
    """
    before = _TRAINED.set(facts)
    try:
        yield
    finally:
        _TRAINED.reset(before)


def facts_of_trained() -> Mapping[str, Any] | None:
    """The facts of the trained model whose networks are being built; None: there is no such
    model, and networks load published weights."""
    return _TRAINED.get(None)
