"""A GRU that is trained on a CPU: a few large calls instead of torch's thousands of small ones."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class _Order(NamedTuple):
    """The V rows of n sequences that are read position by position, and at each position the
    longest sequence first (see `Sequences`). All but `spans` are row numbers."""

    spans: tuple[tuple[int, int], ...]  # the first row of each position, and the row behind it
    previous: Tensor  # of the row one position before, for each row but those of position 0
    mirrored: Tensor  # (V,) of the row that is as far from the other end of its sequence
    last: Tensor  # (n,) of the last row of each sequence


def read_on_cpu(
    gru: nn.GRU, rows: Tensor, steps: tuple[int, ...], factors: torch.dtype
) -> tuple[Tensor, Tensor]:
    """`gru` of one layer over the `rows (V, width)` of sequences, `steps` of which have position 0,
    1, ...; the same as with a `PackedSequence`, except for the rounding.

    Args:
        factors: the type to which the factors of products over all rows are rounded. The
            recurrence itself is computed in the type of `rows`.

    Returns:
        The states `(V, d H)` of the d directions, and their final states `(d, n, H)`.
    """
    weights = [weight for direction in gru.all_weights for weight in direction]
    return _GRU.apply(_order(steps), factors, rows, *weights)


def _order(steps: tuple[int, ...]) -> _Order:
    counts = np.array(steps)
    ends = counts.cumsum()
    starts = ends - counts
    position = np.arange(len(steps)).repeat(counts)
    rank = np.arange(len(position)) - starts[position]
    lengths = np.bincount(rank)
    return _Order(
        spans=tuple(zip(starts.tolist(), ends.tolist(), strict=True)),
        previous=torch.from_numpy((starts[position - 1] + rank)[steps[0] :]),
        mirrored=torch.from_numpy(starts[lengths[rank] - 1 - position] + rank),
        last=torch.from_numpy(starts[lengths - 1] + np.arange(steps[0])),
    )


class _GRU(torch.autograd.Function):
    """Both directions make a step in the same calls; the second one reads mirrored sequences.

    The backward pass has one product a step. The gradients of the weights are one product over all
    steps. Gates are in torch's order: reset, update, new.
    """

    @staticmethod
    def forward(
        ctx: Any, order: _Order, factors: torch.dtype, rows: Tensor, *weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        input_weights, state_weights, input_bias, state_bias = (
            weights[part::4] for part in range(4)
        )
        count, size = len(input_weights), state_weights[0].shape[1]
        input_weights = tuple(weight.to(factors) for weight in input_weights)
        rounded = rows.to(factors)
        read = [rounded, rounded.index_select(0, order.mirrored)][:count]
        inputs = rounded.new_empty(count, len(rows), 3 * size)
        for result, row, weight, bias in zip(inputs, read, input_weights, input_bias, strict=True):
            torch.addmm(bias.to(factors), row, weight.T, out=result)
        inputs = inputs.to(rows.dtype)
        turned, added = torch.stack([weight.T for weight in state_weights]), torch.stack(state_bias)
        state = rows.new_zeros(count, len(order.last), size)
        gates, candidates, states = [], [], []
        for start, end in order.spans:
            state, now = state[:, : end - start], inputs[:, start:end]
            gate = torch.baddbmm(added[:, None], state, turned)
            both = gate[..., : 2 * size]
            reset, update = both.add_(now[..., : 2 * size]).sigmoid_().chunk(2, 2)
            candidate = torch.addcmul(now[..., 2 * size :], reset, gate[..., 2 * size :]).tanh_()
            state = candidate.lerp(state, update)
            gates.append(gate)
            candidates.append(candidate)
            states.append(state)
        joined = torch.cat(states, 1)
        ctx.order = order
        ctx.save_for_backward(
            *read,
            *input_weights,
            *state_weights,
            torch.cat(gates, 1),
            torch.cat(candidates, 1),
            joined,
        )
        ctx.set_materialize_grads(False)
        # The states of all directions at the same row.
        mirrored = [one.index_select(0, order.mirrored) for one in joined[1:]]
        return torch.cat([joined[0], *mirrored], 1), joined.index_select(1, order.last)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, state_gradients: Tensor | None, final_gradients: Tensor | None) -> tuple:
        *saved, gates, candidates, states = ctx.saved_tensors
        count, order, size = len(states), ctx.order, states.shape[2]
        read, input_weights, state_weights = (
            saved[:count],
            saved[count : 2 * count],
            saved[2 * count :],
        )
        gradient = torch.zeros_like(states)
        if state_gradients is not None:
            gradient[0] = state_gradients[:, :size]
            if count == 2:
                torch.index_select(state_gradients[:, size:], 0, order.mirrored, out=gradient[1])
        if final_gradients is not None:
            gradient[:, order.last] += final_gradients
        before = torch.zeros_like(states)
        before[:, len(order.last) :] = states.index_select(1, order.previous)
        reset, update, recurrent = gates.chunk(3, 2)
        # What the gradient of a state is multiplied by, to be that of each gate.
        candidate_factor = (1 - update) * (1 - candidates.square())
        reset_factor = candidate_factor * recurrent * reset * (1 - reset)
        update_factor = (before - candidates) * update * (1 - update)
        gate_gradients = torch.stack([reset_factor, update_factor, candidate_factor * reset], 2)
        flat, stacked = gate_gradients.flatten(2), torch.stack(state_weights)
        carried = gradient[:, :0]
        for start, end in reversed(order.spans):
            now = gradient[:, start:end]
            now[:, : carried.shape[1]] += carried
            gate_gradients[:, start:end].mul_(now[:, :, None])
            carried = torch.baddbmm(now * update[:, start:end], flat[:, start:end], stacked)
        input_gradients = torch.cat([flat[..., : 2 * size], gradient * candidate_factor], 2)
        kind, factors = states.dtype, read[0].dtype
        rounded = input_gradients.to(factors)
        row_gradients = None
        if ctx.needs_input_grad[2]:
            row_gradients = (rounded[0] @ input_weights[0]).to(kind)
            if count == 2:
                row_gradients += (rounded[1] @ input_weights[1]).index_select(0, order.mirrored)
        weight_gradients = zip(
            [(one.T @ row).to(kind) for one, row in zip(rounded, read, strict=True)],
            (flat.to(factors).mT @ before.to(factors)).to(kind),
            input_gradients.sum(1),
            flat.sum(1),
            strict=True,
        )
        return None, None, row_gradients, *(part for parts in weight_gradients for part in parts)
