"""Slot attention: learned slots compete for the inputs and become a set of diverse vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from manymatch.batch.padding import PaddedRows
from manymatch.networks.layers.linear import repeated
from manymatch.networks.layers.position_code import (
    grid_sine_code,
    relative_sine_code,
    square_grid_ends,
)
from manymatch.networks.pooling.global_pooling import Mask, cleared, real_rows, zeroed
from manymatch.networks.pooling.set_modules import (
    Given,
    GlobalResidual,
    SetModule,
    Sets,
    feed_forward,
)
from manymatch.similarities.vectors import keep_precision
from manymatch.util.errors import ConfigError

Start = Literal["learned", "random"]
Update = Literal["residual", "gru"]
PositionCode = Literal["sequence", "grid"]
Linear = Callable[[Tensor], Tensor]


class SlotAttention(SetModule):
    """K learned slots, refined T times by one block whose weights are shared by all passes.

    With E the slots, a pass is `E += W_o(A v)`, `E += MLP(LN(E))`, v the values of the LayerNormed
    inputs. The weights A of each input over the slots are a softmax over SLOTS; the weights of each
    slot are then divided by their sum over the real inputs. The weights of padding are set to 0
    between the two. The slots of the result are `LN(E_T)`, the elements `LN(E_T) + LN(global)`.

    Args:
        width: W, size of the inputs.
        size: D, size of slots and elements.
        n_slots: K.
        iterations: T.
        heads: number of heads; divides `attention_size`.
        attention_size: size of queries, keys and values, all heads together; None: `size`.
        position_code: add a sine code of an input's position to the input of its key. "sequence":
            the position relative to the sample's length. "grid": row and column of a cell, which
            its box tells; without boxes the inputs are the cells of a square grid, row by row.
        dropout: of the output of attention, and inside the MLP.
        start: "learned": the first slots are K learned vectors. "random": the first slots are
            samples of one learned Gaussian, as in Locatello et al. (see `RandomSlots`).
        update: "residual": `E += W_o(A v)`. "gru": `E = GRU(W_o(A v), E)`, as in Locatello et al.

    References:
        Kim, Kim and Kwak, Improving Cross-Modal Retrieval with Set of Diverse Embeddings (DivE),
        CVPR 2023, set prediction module; Locatello et al., Object-Centric Learning with Slot
        Attention, NeurIPS 2020.
    """

    def __init__(
        self,
        width: int,
        size: int,
        n_slots: int = 4,
        iterations: int = 4,
        heads: int = 4,
        attention_size: int | None = None,
        position_code: PositionCode | None = None,
        dropout: float = 0.0,
        start: Start = "learned",
        update: Update = "residual",
    ) -> None:
        super().__init__()
        self.iterations, self.position_code = iterations, position_code
        if start == "learned":
            self.slots = nn.Parameter(torch.randn(n_slots, size))
        self.random = RandomSlots(n_slots, size) if start == "random" else None
        self.block = SlotBlock(width, size, heads, attention_size or size, dropout, update)
        self.output = GlobalResidual(size)

    def _sets(self, local: Tensor, mask: Mask, globals: Given, boxes: Given) -> Sets:
        slots, attention = self._refine(local, mask, boxes)
        return self.output(slots, globals, zeroed(attention[-1].mean(1).mT, mask).mT)

    def attend(
        self, local: Tensor, mask: Mask = None, boxes: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The slots `(n, K, D)` and the attention maps of every pass `(T, n, K, R)`.

        A map is the mean over heads of the weights of the inputs in the slots.
        """
        slots, attention = self._refine(local, mask, boxes)
        maps = [zeroed(weights.mean(1).mT, mask).mT for weights in attention]
        return self.output.slot_norm(slots), torch.stack(maps)

    def _refine(
        self, local: Tensor, mask: Mask, boxes: Tensor | None
    ) -> tuple[Tensor, list[Tensor]]:
        """The slots, and the weights of each pass, which have no meaning on padding."""
        local = cleared(local, mask)
        inputs = self.block.read(local, mask, self._code(local, mask, boxes))
        attention: list[Tensor] = []
        if self.random is None:
            slots = self.slots.expand(len(local), -1, -1)
        else:
            slots = self.random(len(local))
        slots, linear = self.block.linear_layers(slots)
        for _ in range(self.iterations):
            slots, weights = self.block(slots, inputs, linear)
            attention.append(weights)
        return slots, attention

    def _code(self, local: Tensor, mask: Mask, boxes: Tensor | None) -> Tensor | None:
        """`(n, R, W)` or `(1, R, W)`, the code of the positions in `local (n, R, W)`; None without
        a position code.

        Raises:
            ConfigError: there are no boxes, and the cells are no square grid, or some are padding.
        """
        # In float32 at least: under autocast the LayerNormed inputs are in float32.
        width, kind = local.shape[2], torch.promote_types(local.dtype, torch.float)
        if self.position_code == "sequence":
            return relative_sine_code(real_rows(local, mask), width, kind)
        if self.position_code is None:
            return None
        if boxes is not None:
            return grid_sine_code(boxes[..., 2:], width, kind)
        if isinstance(mask, PaddedRows) and not mask.all_real:  # an image's side is not known
            raise ConfigError(
                "sets.position_code: the images have different numbers of features without boxes, "
                "or some are dropped, so that rows and columns of the grid are not known. Store "
                "the features with boxes, set region_drop to 0, or set sets.position_code to false."
            )
        return grid_sine_code(square_grid_ends(local.shape[1], local.device), width, kind)


class RandomSlots(nn.Module):
    """Slots `mean + std noise` of one Gaussian over R^D, whose mean and log std are learned.

    In training every slot of every sample has noise of its own. In evaluation K fixed noises serve
    all samples, so that the set of a sample depends on the sample alone.

    References:
        Locatello et al., Object-Centric Learning with Slot Attention, NeurIPS 2020, algorithm 1;
        DivE, appendix B.3.
    """

    noise: Tensor

    def __init__(self, n_slots: int, size: int) -> None:
        super().__init__()
        self.mean, self.log_std = (nn.Parameter(torch.empty(1, size)) for _ in range(2))
        for parameter in (self.mean, self.log_std):
            nn.init.xavier_uniform_(parameter)
        fixed = torch.Generator().manual_seed(0)
        self.register_buffer("noise", torch.randn(n_slots, size, generator=fixed))

    def forward(self, count: int) -> Tensor:
        """The first slots `(count, K, D)` of `count` samples."""
        noise = self.noise.expand(count, -1, -1)
        if self.training:
            noise = torch.randn_like(noise)
        return self.mean + self.log_std.exp() * noise


class Inputs(NamedTuple):
    """What every pass of slot attention reads of the inputs."""

    keys: Tensor
    """`(n, heads, R, d)`, divided by the square root of d."""
    values: Tensor
    """`(n, heads, R, d)`, zero where padded."""
    real: Tensor
    """`(n, R, 1)`: 1 for real inputs, else 0, in float32 or better."""


class SlotBlock(nn.Module):
    """One pass of slot attention."""

    least: Tensor
    """What is added to the sum of a slot's shares."""

    def __init__(
        self,
        width: int,
        size: int,
        heads: int,
        attention_size: int,
        dropout: float,
        update: Update,
    ) -> None:
        super().__init__()
        if attention_size % heads:
            raise ValueError(f"attention size {attention_size} is not a multiple of {heads} heads")
        self.heads = heads
        self.register_buffer("least", torch.full((1, 1, 1), 1e-7), persistent=False)
        self.input_norm, self.slot_norm = nn.LayerNorm(width), nn.LayerNorm(size)
        self.query = nn.Linear(size, attention_size, bias=False)
        self.key = nn.Linear(width, attention_size, bias=False)
        self.value = nn.Linear(width, attention_size, bias=False)
        self.gather = nn.Linear(attention_size, size)
        self.dropout = nn.Dropout(dropout)
        self.gru = nn.GRUCell(size, size) if update == "gru" else None
        if self.gru is not None:  # biases of zero, as in `networks.layers.gru`
            nn.init.zeros_(self.gru.bias_ih)
            nn.init.zeros_(self.gru.bias_hh)
        self.mlp_norm, self.mlp = nn.LayerNorm(size), feed_forward(size, dropout)

    def read(self, local: Tensor, mask: Mask, code: Tensor | None) -> Inputs:
        """What every pass reads of `local (n, R, W)`."""
        local, kind = self.input_norm(local), torch.promote_types(local.dtype, torch.float32)
        coded = local if code is None else local + code.to(local.dtype)
        keys, values = self.key(coded), zeroed(self.value(local), mask)
        # In the order in which every pass multiplies by them.
        keys = (self._split(keys) * (keys.shape[2] // self.heads) ** -0.5).contiguous()
        real = real_rows(local, mask)[:, :, None].to(kind)
        return Inputs(keys, self._split(values).contiguous(), real)

    def linear_layers(self, slots: Tensor) -> tuple[Tensor, list[Linear]]:
        """The first slots, and the layers of all passes in the order of `forward`."""
        layers: list[Any] = [self.query, self.gather, self.mlp[0], self.mlp[3]]
        # A CPU has no launches that could be saved, and compiled code has no list of calls.
        if self.query.weight.device.type == "cpu" or torch.compiler.is_compiling():
            return slots, layers
        return repeated(slots, *layers)

    def forward(self, slots: Tensor, inputs: Inputs, linear: list[Linear]) -> tuple[Tensor, Tensor]:
        """The slots `(n, K, D)` after the pass, and the weights `(n, heads, K, R)`."""
        query, gather, widen, narrow = linear
        queries = self._split(query(self.slot_norm(slots)))
        weights = competing_weights(queries @ inputs.keys.mT, inputs, self.least)
        gathered = (weights @ inputs.values).transpose(1, 2).flatten(2)
        gathered = self.dropout(gather(gathered))
        if self.gru is None:
            slots = slots + gathered
        else:
            slots = self.gru(gathered.flatten(0, 1), slots.flatten(0, 1)).view_as(gathered)
        _, activation, dropout, _ = self.mlp
        return slots + narrow(dropout(activation(widen(self.mlp_norm(slots))))), weights

    def _split(self, vectors: Tensor) -> Tensor:
        """`(n, R, heads * d)` -> `(n, heads, R, d)`."""
        return vectors.unflatten(2, (self.heads, -1)).transpose(1, 2)


def competing_weights(scores: Tensor, inputs: Inputs, least: Tensor) -> Tensor:
    """Weights of slots over inputs from `scores (n, heads, K, R)`, in the type of the values.

    Padding is left out of the sums after the softmax over slots. If it were masked before, its
    column would be uniform instead of 0, and the set of a sample would depend on the amount of
    padding. The weights of padding have no meaning: its values are zero. `least (1, 1, 1)` is added
    to the sums.
    """
    shares = scores.softmax(2, dtype=inputs.real.dtype)
    with keep_precision(scores):
        sums = torch.baddbmm(least.to(shares.dtype), shares.flatten(1, 2), inputs.real)
    return (shares / sums.view(*shares.shape[:3], 1)).to(inputs.values.dtype)
