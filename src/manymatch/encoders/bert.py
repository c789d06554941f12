"""BERT over wordpieces: finely tuned, tuned by learned prefixes, or frozen."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from transformers import BertConfig

from manymatch.config.preset import Count
from manymatch.config.strict import Strict
from manymatch.encoders.bert_weights import bert_folder, bert_network
from manymatch.system.errors import ConfigError
from manymatch.text.wordpieces import AnyVocabulary, WordPieces

ENDS = 2
"""[CLS] and [SEP]."""


class BertSettings(Strict):
    """Which BERT, and what of it learns.

    `full`: all of it. `prefix`: P-Tuning v2: learned keys and values that stand before each
    layer's own, and the last layer. `frozen`: nothing; its dropout is off.
    """

    weights: str = "minilm"
    """`minilm` (MiniLM-L6, 384-d, a package), a folder, or a name on the Hugging Face hub."""
    tuning: Literal["full", "prefix", "frozen"] = "full"
    prefix_length: Count = 24


def bert_vocabulary(settings: BertSettings) -> WordPieces:
    """The wordpieces of the BERT that `settings` name; they lead to its network and weights."""
    return WordPieces.from_folder(bert_folder(settings.weights))


class Tokens(NamedTuple):
    """Last hidden states `(m, 2 + L, H)`, zero where padded, and which are real `(m, 2 + L)`:
    [CLS], [SEP], then the L wordpieces."""

    states: Tensor
    mask: Tensor


class BertEncoder(nn.Module):
    """The last hidden states of a BERT's wordpieces; `width` is their size H.

    [CLS] and [SEP] are added here, and have the positions before the first and behind the last
    real piece wherever they stand in the tensor. Padding is never attended to.

    Raises:
        ConfigError: `vocabulary` is not one of wordpieces, or the weights cannot be used.

    References:
        Devlin et al., BERT, NAACL 2019; Liu et al., P-Tuning v2, ACL 2022, section 3.
    """

    def __init__(self, settings: BertSettings, vocabulary: AnyVocabulary) -> None:
        super().__init__()
        if not isinstance(vocabulary, WordPieces):
            raise ConfigError("a BERT reads wordpieces, but the captions are numbered by words")
        self.network = bert_network(vocabulary)
        self.width: int = self.network.config.hidden_size
        self.ends = nn.Buffer(torch.tensor([vocabulary.CLS, vocabulary.SEP]), persistent=False)
        self.frozen = settings.tuning == "frozen"
        self.prefixes: Prefixes | None = None
        if settings.tuning != "full":
            self.network.requires_grad_(False)
        if settings.tuning == "prefix":
            self.network.encoder.layer[-1].requires_grad_(True)
            self.prefixes = Prefixes(self.network.config, settings.prefix_length)

    def train(self, mode: bool = True) -> BertEncoder:
        """A frozen BERT is always in evaluation mode: what it says of a caption does not change."""
        super().train(mode)
        self.network.train(mode and not self.frozen)
        return self

    def forward(self, words: Tensor, mask: Tensor) -> Tokens:
        """`words (m, L)` piece ids, `mask (m, L)`: at least one real piece, padding behind."""
        ids, positions, real = self._with_ends(words, mask)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            hidden = self.network.embeddings(ids, position_ids=positions)
            attended = self._attended(real)
            for layer in self.network.encoder.layer:
                hidden = layer(hidden, attended, past_key_values=self.prefixes)
        return Tokens(hidden.masked_fill(~real[:, :, None], 0.0), real)

    def _with_ends(self, words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Ids, positions and mask, each `(m, 2 + L)`, with [CLS] and [SEP] first."""
        count, length = words.shape
        last = mask.sum(1, keepdim=True) + 1
        places = torch.arange(1, length + 1, device=words.device).expand(count, -1)
        ids = torch.cat([self.ends.expand(count, -1), words], 1)
        positions = torch.cat([torch.zeros_like(last), last, places], 1)
        return ids, positions, torch.cat([mask.new_ones(count, ENDS), mask], 1)

    def _attended(self, real: Tensor) -> Tensor:
        """`(m, 1, 1, keys)`: what every position looks at."""
        if self.prefixes is not None:
            real = torch.cat([real.new_ones(len(real), self.prefixes.length), real], 1)
        return real[:, None, None]


class Prefixes(nn.Module):
    """Learned keys and values of each layer. To transformers' attention it is a cache of what
    came before, which it asks by `update` for all keys and values."""

    def __init__(self, config: BertConfig, length: int) -> None:
        super().__init__()
        self.length = length
        heads, layers = config.num_attention_heads, config.num_hidden_layers
        vectors = torch.randn(layers, 2, heads, length, config.hidden_size // heads)
        self.vectors = nn.Parameter(config.initializer_range * vectors)

    def update(self, keys: Tensor, values: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """`(m, heads, L, head size)` each -> the same with the layer's prefix before them."""
        before = self.vectors[layer].to(keys.dtype)[:, None].expand(-1, len(keys), -1, -1, -1)
        return torch.cat([before[0], keys], 2), torch.cat([before[1], values], 2)
