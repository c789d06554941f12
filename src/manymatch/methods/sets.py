"""The settings of a set module and of a similarity of sets, and what they build."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from manymatch.config.preset import Count, Positive, Probability
from manymatch.config.strict import Strict
from manymatch.networks.pooling.decoder import TransformerDecoder
from manymatch.networks.pooling.pie_net import PIENet
from manymatch.networks.pooling.prediction import SetModule
from manymatch.networks.pooling.slot_attention import PositionCode, SlotAttention, Start, Update
from manymatch.similarities.set_similarity import InferenceRule, SimilarityName, check_inference
from manymatch.util.errors import ConfigError


class SetSettings(Strict):
    """How many elements a set has, and the module that predicts them. The defaults are DivE's."""

    module: Literal["slot_attention", "pie_net", "decoder"] = "slot_attention"
    size: Count = 4
    """K, the number of elements of a set."""
    iterations: Count = 4
    """T: passes of slot attention's one block, or layers of the decoder."""
    heads: Count = 4
    attention_size: Count | None = None
    """Size of slot attention's queries, keys and values, all heads together; null: the size of the
    embedding."""
    position_code: bool = False
    """Slot attention's keys of images know row and column of each cell; for features that are the
    cells of a grid. Boxes tell the cells' places. Features without boxes are a square grid."""
    dropout: Probability = 0.0
    """Slot attention and decoder: dropout of what attention gathers, and inside the MLP. PIE-Net:
    dropout of the sigmoids."""
    slots: Start = "learned"
    """Slot attention's slots before the first pass: learned vectors, or samples of a learned
    Gaussian."""
    update: Update = "residual"
    """How slot attention's slots take in what they gather: by addition, or by a step of a GRU."""
    hidden: Count | None = None
    """Width inside PIE-Net's attention; null: half the width of the inputs."""

    @model_validator(mode="after")
    def _options_of_slot_attention(self) -> Self:
        for key, default in (("slots", "learned"), ("update", "residual")):
            if self.module != "slot_attention" and getattr(self, key) != default:
                raise ValueError(f"{key} is an option of the module 'slot_attention' alone")
        return self


class SimilaritySettings(Strict):
    """The arguments of `SetSimilarity`."""

    name: SimilarityName
    alpha: Positive = 16.0
    """Sharpness of smooth-Chamfer."""
    scale: Positive = 1.0
    """`mp` is `sigmoid(scale c + shift)`: where the learned scale and shift start."""
    shift: float = 0.0
    inference: InferenceRule | None = None
    """The rule by which MaxMatch ranks; null: `topk`."""

    @model_validator(mode="after")
    def _rule_has_its_similarity(self) -> Self:
        check_inference(self.name, self.inference)
        return self


def set_module(
    settings: SetSettings, width: int, size: int, position_code: PositionCode | None = None
) -> SetModule:
    """A fresh module from inputs of `width` to elements of `size` dimensions.

    Slot attention's keys have the `position_code`.

    Raises:
        ConfigError: the number of heads does not divide the size that the heads share.
    """
    if settings.module == "pie_net":
        return PIENet(width, size, settings.size, settings.hidden, settings.dropout)
    if settings.module == "decoder":
        _check_heads(settings.heads, size, "the embedding's size")
        return TransformerDecoder(
            width, size, settings.size, settings.iterations, settings.heads, settings.dropout
        )
    _check_heads(settings.heads, settings.attention_size or size, "attention_size")
    return SlotAttention(
        width,
        size,
        settings.size,
        settings.iterations,
        settings.heads,
        settings.attention_size,
        position_code,
        settings.dropout,
        settings.slots,
        settings.update,
    )


def _check_heads(heads: int, shared: int, what: str) -> None:
    if shared % heads:
        raise ConfigError(
            f"sets: {what} {shared} is not a multiple of {heads} heads. Set heads to a divisor."
        )
