"""A training step of VSE-infinity against the computation of its released code, in turns.

    OMP_NUM_THREADS=1 python benchmarks/vse_infinity.py              # 128 images, as in the paper
    OMP_NUM_THREADS=1 python benchmarks/vse_infinity.py --images 32 --rounds 10

Both networks have the sizes of the published preset (36 regions of 2,048, D = 1024, bi-GRU) and
read the same made-up batch, a caption for each image. The released way is written down plainly:
torch's GRU over packed captions; in each GPO torch's GRU over the position codes of every sample;
masks and a mean of products; an optimiser without fused kernels. Its augmentation, which copies
regions one by one, is left out of both. The script prints the median processor time of a step of
both, and the median ratio.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from measuring import arguments, compare
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from training_step import FEATURES, built, made_up, made_up_words, published

from manymatch.batch.batch import Batch
from manymatch.experiments.costs.timing import training_step
from manymatch.networks.layers.position_code import sine_code
from manymatch.training.run_context import deterministic

SIZE, WORD_SIZE, CODE_SIZE = 1024, 300, 32
WARM_UP = 2


def main() -> None:
    options = arguments(__doc__, images=128, rounds=9)
    vocabulary = made_up_words()
    batch, device = made_up(options.images, 1, vocabulary).to("cpu"), torch.device("cpu")
    preset = published("vse_infinity")
    ours = training_step(built(preset, vocabulary), preset.training, device)
    released = released_step(len(vocabulary), preset.training.clip_norm or 2.0)
    steps = {"manymatch": lambda: ours(batch), "released": lambda: released(batch)}
    with deterministic(True):
        compare(f"a step of {options.images} images", steps, options.rounds, warm_up=WARM_UP)


def released_step(words: int, clip_norm: float) -> Callable[[Batch], object]:
    model = Released(words)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)

    def step(batch: Batch) -> None:
        # Captions come with the longest first.
        lengths, order = batch.word_mask.sum(1).sort(descending=True)
        scores = model(batch.features[order], batch.words[order], lengths)
        optimizer.zero_grad()
        hardest_negatives(scores, margin=0.2).backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
        optimizer.step()

    return step


def hardest_negatives(scores: Tensor, margin: float) -> Tensor:
    positive, own = scores.diag()[:, None], torch.eye(len(scores)) > 0.5
    texts = (margin + scores - positive).clamp(min=0).masked_fill(own, 0)
    images = (margin + scores - positive.T).clamp(min=0).masked_fill(own, 0)
    return texts.max(1).values.sum() + images.max(0).values.sum()


class Released(nn.Module):
    def __init__(self, words: int) -> None:
        super().__init__()
        self.linear, self.first = nn.Linear(FEATURES, SIZE), nn.Linear(FEATURES, SIZE // 2)
        self.norm, self.second = nn.BatchNorm1d(SIZE // 2), nn.Linear(SIZE // 2, SIZE)
        self.words = nn.Embedding(words, WORD_SIZE)
        self.gru = nn.GRU(WORD_SIZE, SIZE, batch_first=True, bidirectional=True)
        self.pool_regions, self.pool_words = ReleasedGPO(), ReleasedGPO()

    def forward(self, features: Tensor, words: Tensor, lengths: Tensor) -> Tensor:
        regions = torch.full((len(features),), features.shape[1])
        flat = features.flatten(0, 1)
        hidden = self.second(self.norm(self.first(flat)).relu()).view(*features.shape[:2], SIZE)
        images = self.pool_regions(hidden + self.linear(features), regions)
        states = average(self.gru, self.words(words), lengths)
        texts = self.pool_words(states, lengths)
        return functional.normalize(images, dim=1) @ functional.normalize(texts, dim=1).T


class ReleasedGPO(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(CODE_SIZE, CODE_SIZE, batch_first=True, bidirectional=True)
        self.score = nn.Linear(CODE_SIZE, 1, bias=False)

    def forward(self, local: Tensor, lengths: Tensor) -> Tensor:
        padding = (torch.arange(local.shape[1]) >= lengths[:, None])[:, :, None]
        codes = sine_code(local.shape[1], CODE_SIZE).repeat(len(local), 1, 1)
        states = average(self.gru, codes.masked_fill(padding, 0), lengths)
        scores = self.score(states).masked_fill(padding, -10_000)
        weights = (scores / 0.1).softmax(1)
        ordered = local.masked_fill(padding, -10_000).sort(dim=1, descending=True).values
        return (ordered.masked_fill(padding, 0) * weights).sum(1)


def average(gru: nn.GRU, rows: Tensor, lengths: Tensor) -> Tensor:
    packed = pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(gru(packed)[0], batch_first=True)
    forward, backward = states.chunk(2, 2)
    return (forward + backward) / 2


if __name__ == "__main__":
    main()
