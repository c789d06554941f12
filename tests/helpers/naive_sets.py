"""Set modules as loops over samples, slots, heads and inputs, written from the papers."""

import math

import torch

from manymatch.networks.pooling import PIENet, TransformerDecoder


def position_code(length, size):
    """DivE's released code, place by place and channel by channel."""
    code = torch.zeros(length, size, dtype=torch.float64)
    for n in range(1, length + 1):
        turn = 2 * math.pi * n / (length + 1e-6)
        for j in range(size):
            angle = turn / 10000 ** (2 * (j // 2) / size)
            code[n - 1, j] = math.sin(angle) if j % 2 == 0 else math.cos(angle)
    return code


def grid_code(rows, columns, size):
    """DETR's code as DivE's released code has it, cell by cell and channel by channel: the row in
    the first half of the channels, the column in the second."""
    down, across = position_code(rows, size - size // 2), position_code(columns, size // 2)
    cells = [torch.cat([down[y], across[x]]) for y in range(rows) for x in range(columns)]
    return torch.stack(cells)


def naive_start(module):
    """The slots before the first pass, one by one, in evaluation."""
    if module.random is None:
        return list(module.slots)
    mean, std = module.random.mean[0], module.random.log_std[0].exp()
    return [mean + std * noise for noise in module.random.noise]


def naive_gru(cell, update, slot):
    """Cho et al.'s GRU: reset and update gates and the candidate state of one slot."""
    from_update = cell.weight_ih @ update + cell.bias_ih
    from_slot = cell.weight_hh @ slot + cell.bias_hh
    (r, z, n), (r_slot, z_slot, n_slot) = from_update.chunk(3), from_slot.chunk(3)
    keep = torch.sigmoid(z + z_slot)
    new = torch.tanh(n + torch.sigmoid(r + r_slot) * n_slot)
    return (1 - keep) * new + keep * slot


def naive_slots(module, inputs, grid=None):
    """One sample: slots before the last LayerNorm, and the maps of every pass. The `grid` of the
    inputs is its rows and columns."""
    block, slots = module.block, naive_start(module)
    heads, width = block.heads, block.query.out_features // block.heads
    code = torch.zeros_like(inputs)
    if module.position_code == "sequence":
        code = position_code(*inputs.shape)
    elif module.position_code == "grid":
        code = grid_code(*grid, inputs.shape[1])
    normed = [block.input_norm(x) for x in inputs]
    keys = [block.key(x + c) for x, c in zip(normed, code, strict=True)]
    values = [block.value(x) for x in normed]
    maps = []
    for _ in range(module.iterations):
        queries = [block.query(block.slot_norm(slot)) for slot in slots]
        gathered = [[] for _ in slots]
        seen = torch.zeros(len(slots), len(inputs), dtype=torch.float64)
        for head in range(heads):
            part = slice(head * width, (head + 1) * width)
            shares = []
            for key in keys:
                scores = torch.stack([q[part] @ key[part] / math.sqrt(width) for q in queries])
                shares.append(scores.exp() / scores.exp().sum())
            for k in range(len(slots)):
                total = sum(share[k] for share in shares) + 1e-7
                taken = [share[k] / total for share in shares]
                gathered[k].append(sum(w * v[part] for w, v in zip(taken, values, strict=True)))
                seen[k] += torch.stack(taken) / heads
        for k in range(len(slots)):
            update = block.gather(torch.cat(gathered[k]))
            slots[k] = naive_gru(block.gru, update, slots[k]) if block.gru else slots[k] + update
            slots[k] = slots[k] + block.mlp(block.mlp_norm(slots[k]))
        maps.append(seen)
    return torch.stack(slots), maps


def naive_pie(module, inputs):
    """One sample: residuals and weights."""
    first, second = module.attention.first.weight, module.attention.second.weight
    residuals, maps = [], []
    for row in second:
        weights = torch.stack([row @ torch.tanh(first @ x) for x in inputs]).exp()
        weights = weights / weights.sum()
        attended = sum(w * x for w, x in zip(weights, inputs, strict=True))
        residuals.append(torch.sigmoid(module.residual(attended)))
        maps.append(weights)
    return torch.stack(residuals), torch.stack(maps)


def naive_attention(layer, queries, keys):
    """torch's multi-head attention on one sample, its own weights, and its mean map."""
    size, heads = layer.embed_dim, layer.num_heads
    separate = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
    weights = separate if layer.in_proj_weight is None else layer.in_proj_weight.chunk(3)
    q, k, v = (
        rows @ weight.T + bias
        for rows, weight, bias in zip(
            (queries, keys, keys), weights, layer.in_proj_bias.chunk(3), strict=True
        )
    )
    width, joined, seen = size // heads, [], 0
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        taken = (q[:, part] @ k[:, part].T / math.sqrt(width)).softmax(1)
        joined.append(taken @ v[:, part])
        seen = seen + taken / heads
    return layer.out_proj(torch.cat(joined, 1)), seen


def naive_decoder(module, inputs):
    queries, normed = module.queries, module.input_norm(inputs)
    for layer in module.layers:
        known = layer.self_norm(queries)
        queries = queries + naive_attention(layer.exchange, known, known)[0]
        gathered, seen = naive_attention(layer.gather, layer.cross_norm(queries), normed)
        queries = queries + gathered
        queries = queries + layer.mlp(layer.mlp_norm(queries))
    return queries, seen


def naive_sets(module, inputs, whole, grid=None):
    """Elements, element slots and last map of one sample."""
    if isinstance(module, PIENet):
        slots, seen = naive_pie(module, inputs)
        return module.norm(whole + slots), slots, seen
    if isinstance(module, TransformerDecoder):
        slots, seen = naive_decoder(module, inputs)
    else:
        slots, maps = naive_slots(module, inputs, grid)
        seen = maps[-1]
    slots = module.output.slot_norm(slots)
    return slots + module.output.global_norm(whole), slots, seen


def ragged(lengths, width, size, garbage=50.0):
    """Samples of unequal size in double precision: their inputs, the same padded with `garbage`,
    the mask, and the global features."""
    generator = torch.Generator().manual_seed(1)
    members = [torch.randn(n, width, generator=generator).double() for n in lengths]
    local = torch.full((len(members), max(lengths) + 2, width), garbage, dtype=torch.float64)
    mask = torch.zeros(local.shape[:2], dtype=torch.bool)
    for row, real in enumerate(members):
        local[row, : len(real)], mask[row, : len(real)] = real, True
    return members, local, mask, torch.randn(len(members), size, generator=generator).double()
