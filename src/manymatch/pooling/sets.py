"""The set modules that a preset may name."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from manymatch.config.preset import Count, Probability
from manymatch.config.strict import Strict
from manymatch.pooling.decoder import TransformerDecoder
from manymatch.pooling.pie_net import PIENet
from manymatch.pooling.prediction import SetModule, Sets
from manymatch.pooling.slot_attention import SlotAttention, Start, Update
from manymatch.system.errors import ConfigError

__all__ = ["SetModule", "SetSettings", "Sets", "set_module"]

SetModuleName = Literal["slot_attention", "pie_net", "decoder"]


class SetSettings(Strict):
    """How many elements a set has and what predicts them. The defaults are DivE's."""

    module: SetModuleName = "slot_attention"
    size: Count = 4
    """K, the elements of a set."""
    iterations: Count = 4
    """T: passes of slot attention's one block, or layers of the decoder."""
    heads: Count = 4
    attention_size: Count | None = None
    """Of slot attention's queries, keys and values, all heads together; null: the embedding's."""
    position_code: bool = False
    """Slot attention's keys know the place of each input; for inputs that have an order."""
    dropout: Probability = 0.0
    """Slot attention and decoder: of what attention gathers, and inside the MLP. PIE-Net: of the
    sigmoids."""
    slots: Start = "learned"
    """Slot attention's slots before the first pass: learned vectors, or drawn from a learned
    Gaussian."""
    update: Update = "residual"
    """How slot attention's slots take in what they gather: added, or by a GRU's step."""
    hidden: Count | None = None
    """PIE-Net's width inside its attention; null: half the inputs' width."""

    @model_validator(mode="after")
    def _options_of_slot_attention(self) -> Self:
        for key, default in (("slots", "learned"), ("update", "residual")):
            if self.module != "slot_attention" and getattr(self, key) != default:
                raise ValueError(f"{key} is an option of the module 'slot_attention' alone")
        return self


def set_module(settings: SetSettings, width: int, size: int) -> SetModule:
    """A fresh module from inputs of `width` to elements of `size` dimensions.

    Raises:
        ConfigError: the heads do not divide what they share.
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
        settings.position_code,
        settings.dropout,
        settings.slots,
        settings.update,
    )


def _check_heads(heads: int, shared: int, what: str) -> None:
    if shared % heads:
        raise ConfigError(f"sets: {what} {shared} is not a multiple of {heads} heads")
