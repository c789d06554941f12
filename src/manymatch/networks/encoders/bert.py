"""BERT over wordpieces: fine-tuned, tuned by learned prefixes, or frozen."""

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from manymatch.batch.wordpieces import AnyVocabulary, WordPieces
from manymatch.config.preset import Count
from manymatch.config.strict import Strict
from manymatch.networks.encoders.bert_weights import bert_folder, bert_network
from manymatch.networks.encoders.hub_text import HubTextEncoder, HubTextSettings, TokenEncoder
from manymatch.util.errors import ConfigError

if TYPE_CHECKING:
    from transformers import BertConfig

Tuning = Literal["full", "prefix", "frozen"]


class BertSettings(Strict):
    """The BERT that reads captions, and how it learns."""

    weights: str = "minilm"
    """`minilm` (MiniLM-L6, 384-d, a package), a folder, or a name on the Hugging Face hub."""
    tuning: Tuning = "full"
    """`full`: all of the network learns. `prefix`: P-Tuning v2: learned keys and values before each
    layer's own, and the last layer. `frozen`: nothing learns, and the network's dropout is off."""
    prefix_length: Count = 24
    """Number of learned keys and values of each layer."""

    def vocabulary(self) -> WordPieces:
        """The wordpieces of this BERT, which lead to its network and weights."""
        return WordPieces.from_folder(bert_folder(self.weights))


class BertEncoder(TokenEncoder):
    """The last hidden states of [CLS], a BERT's wordpieces and [SEP].

    No position attends to padding.

    Args:
        settings: how the network learns.
        vocabulary: the wordpieces, which lead to the network and its weights.

    Raises:
        ConfigError: `vocabulary` has words instead of wordpieces, or the weights cannot be used.

    References:
        Devlin et al., BERT, NAACL 2019; Liu et al., P-Tuning v2, ACL 2022, section 3.
    """

    name = "bert"

    def __init__(self, settings: BertSettings, vocabulary: AnyVocabulary) -> None:
        if not isinstance(vocabulary, WordPieces):
            raise ConfigError("a BERT reads wordpieces, but the captions are numbered by words")
        network = bert_network(vocabulary)
        frozen = settings.tuning == "frozen"
        super().__init__(network, vocabulary, network.config.hidden_size, frozen)
        self.prefixes: Prefixes | None = None
        if settings.tuning != "full":
            self.network.requires_grad_(False)
        if settings.tuning == "prefix":
            self.network.encoder.layer[-1].requires_grad_(True)
            self.prefixes = Prefixes(self.network.config, settings.prefix_length)

    def states(self, ids: Tensor, real: Tensor) -> Tensor:
        attended = real
        if self.prefixes is not None:
            attended = torch.cat([real.new_ones(len(real), self.prefixes.length), real], 1)
        hidden: Tensor = self.network.embeddings(ids)
        for layer in self.network.encoder.layer:
            hidden = layer(hidden, attended[:, None, None], past_key_values=self.prefixes)
        return hidden


def token_encoder(
    hub: HubTextSettings | None, bert: BertSettings, vocabulary: AnyVocabulary
) -> TokenEncoder:
    """The text model of the hub that `hub` names, else the BERT."""
    return BertEncoder(bert, vocabulary) if hub is None else HubTextEncoder(hub, vocabulary)


class Prefixes(nn.Module):
    """Learned keys and values of each layer.

    For the attention of `transformers` this module is a cache of earlier keys and values, which
    the attention asks by `update` for all keys and values.
    """

    def __init__(self, config: "BertConfig", length: int) -> None:
        super().__init__()
        self.length = length
        heads, layers = config.num_attention_heads, config.num_hidden_layers
        vectors = torch.randn(layers, 2, heads, length, config.hidden_size // heads)
        self.vectors = nn.Parameter(config.initializer_range * vectors)

    def update(self, keys: Tensor, values: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """`(m, heads, L, head size)` each -> the same with the layer's prefix before them."""
        before = self.vectors[layer].to(keys.dtype)[:, None].expand(-1, len(keys), -1, -1, -1)
        return torch.cat([before[0], keys], 2), torch.cat([before[1], values], 2)
