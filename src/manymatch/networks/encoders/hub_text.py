"""Any text model of transformers, or the text part of a two-tower model such as CLIP.

The model comes from a folder or from the hub. A trained model holds its weights, its configuration
and its tokeniser, and needs neither.
"""

from typing import Annotated, Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from manymatch.batch.pieces import Pieces
from manymatch.batch.wordpieces import AnyVocabulary, WordPieces
from manymatch.networks.backbones.learning import Learning, set_learning
from manymatch.networks.backbones.text_model import hub_pieces, keep_text_tower, text_network
from manymatch.util.errors import ConfigError

_TOLERANCE = 1e-3
"""The most that a text's states alone and in a batch may differ, relative to the largest."""


class HubTextSettings(Learning):
    """The text model that reads captions, and what of the model learns."""

    model: Annotated[str, Field(min_length=1)]
    """A folder, or NAME@REVISION on the Hugging Face hub."""

    def vocabulary(self) -> Pieces:
        """The pieces of the model's tokeniser, which lead to its network and weights."""
        return hub_pieces(self.model)


class Tokens(NamedTuple):
    """`states (m, E + L, H)`: last hidden states of a caption's pieces and of the E pieces before
    and behind them, zero where padded. `mask (m, E + L)`: True for the real ones."""

    states: Tensor
    mask: Tensor


class TokenEncoder(nn.Module):
    """A network that reads pieces. The encoder adds the pieces before and behind each text.

    Args:
        network: a network of transformers.
        pieces: the pieces of its tokeniser.
        width: H, the size of hidden states.
        frozen: whether nothing learns. Then the network stays in evaluation mode.

    Attributes:
        name: what the module that has the encoder calls the encoder.
        ends: E, the number of pieces that are added.
    """

    name = "hf"

    def __init__(self, network: nn.Module, pieces: Pieces, width: int, frozen: bool) -> None:
        super().__init__()
        self.network: Any = network
        self.width, self.frozen, self.special = width, frozen, pieces.special
        added = [*self.special.first, *self.special.last]
        self.ends = len(added)
        self.added = nn.Buffer(torch.tensor(added, dtype=torch.int64), persistent=False)

    @property
    def tower(self) -> Any:
        """The network of transformers."""
        return self.network

    def train(self, mode: bool = True) -> "TokenEncoder":
        """A frozen network stays in evaluation mode, so that its states of a text never change."""
        super().train(mode)
        self.network.train(mode and not self.frozen)
        return self

    def forward(self, words: Tensor, mask: Tensor) -> Tokens:
        """`words (m, L)` piece ids, `mask (m, L)`: padding behind the real pieces."""
        ids, real = self.whole_texts(words, mask)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            hidden = self.states(ids, real)
        return Tokens(hidden.masked_fill(~real[:, :, None], 0.0), real)

    def whole_texts(self, words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The ids `(m, E + L)` with the added pieces, and the mask of the real ones."""
        special, count = self.special, len(self.special.first)
        first, last = self.added.expand(len(words), -1).split([count, len(special.last)], 1)
        padded = words.masked_fill(~mask, special.pad)
        ids = torch.cat([first, padded, torch.full_like(last, special.pad)], 1)
        places = mask.sum(1, keepdim=True) + count + torch.arange(last.shape[1], device=ids.device)
        real = torch.cat([mask.new_ones(len(mask), self.ends), mask], 1)
        return ids.scatter(1, places, last), real

    def states(self, ids: Tensor, real: Tensor) -> Tensor:
        """The last hidden states `(m, E + L, H)` of whole texts; any numbers where padded."""
        states: Tensor = self.run(self.network, ids, real).last_hidden_state
        if self.special.filled == "left":
            states = _rolled(states, -real.sum(1))
        return states[:, : ids.shape[1]]

    def run(self, function: Any, ids: Tensor, real: Tensor) -> Any:
        """What a `function` of the network gives for whole texts."""
        if self.special.filled is None:
            return function(input_ids=ids, attention_mask=real.long())
        missing = self.special.length - ids.shape[1]
        filled = functional.pad(ids, (0, missing), value=self.special.pad)
        if self.special.filled == "left":
            filled = _rolled(filled, real.sum(1))
        return function(input_ids=filled)

    def probe(self, pieces: Pieces) -> Tensor:
        """What the encoder gives for two texts.

        Raises:
            ConfigError: the numbers are not finite, are others in a second call, or depend on the
                other texts.
        """
        texts = torch.tensor(pieces.ordinary)[torch.arange(4) % len(pieces.ordinary)]
        texts = torch.stack([texts, texts.flip(0)])
        mask = torch.tensor([[True] * 4, [True] + [False] * 3])
        was_training = self.training
        self.eval()
        with torch.inference_mode():
            (both, _), (again, _) = self(texts, mask), self(texts, mask)
            alone, _ = self(texts[1:, :1], mask[1:, :1])
        self.train(was_training)
        together = both[1:, : alone.shape[1]]
        fault = ""
        if not both.isfinite().all():
            fault = "its states are not finite"
        elif not both.equal(again):
            fault = "a second call gives other states"
        elif (together - alone).abs().max() > _TOLERANCE * alone.abs().max():
            fault = "its states of a text depend on padding"
        if fault:
            raise ConfigError(f"{pieces.pretrained}: {fault}. Name another model")
        return both


def _rolled(rows: Tensor, counts: Tensor) -> Tensor:
    """`rows (m, L, ...)`, of which the first `counts (m,)` move behind the others."""
    places = torch.arange(rows.shape[1], device=rows.device) + counts[:, None]
    return rows[torch.arange(len(rows), device=rows.device)[:, None], places % rows.shape[1]]


class HubTextEncoder(TokenEncoder):
    """The last hidden states of a text model, which learns as `settings` say.

    Raises:
        ConfigError: `vocabulary` belongs to another encoder, or the model cannot be used.
    """

    def __init__(self, settings: HubTextSettings, vocabulary: AnyVocabulary) -> None:
        pieces = _pieces(vocabulary)
        towers, _ = text_network(pieces)
        network = getattr(towers, "text_model", towers)
        frozen = settings.train == "none"
        super().__init__(network, pieces, network.config.hidden_size, frozen)
        if getattr(network, "pooler", None) is not None:
            network.pooler = None  # the states do not need it
        if isinstance(getattr(network, "head", None), nn.Module):  # SigLIP's pooling
            network.head.requires_grad_(False)
        if pieces.pretrained is not None:
            self.probe(pieces)
        set_learning(network, settings)


class TextTower(TokenEncoder):
    """The vectors of texts that a two-tower model compares with those of pictures. Nothing learns.

    Attributes:
        weights_sha256: the hash of the model's weights; None: a trained model holds the weights.

    Raises:
        ConfigError: the model has no text projection, or `vocabulary` belongs to another encoder.
    """

    def __init__(self, vocabulary: AnyVocabulary) -> None:
        pieces = _pieces(vocabulary)
        network, identity = text_network(pieces)
        if not hasattr(network, "get_text_features"):
            raise ConfigError(
                f"{pieces.pretrained or 'the text model'}: the model has no text projection. Name "
                "a two-tower model, such as a CLIP or a SigLIP"
            )
        keep_text_tower(network)
        super().__init__(network.requires_grad_(False), pieces, 0, frozen=True)
        self.weights_sha256 = identity
        if pieces.pretrained is not None:
            self.width = self.probe(pieces).shape[2]

    def states(self, ids: Tensor, real: Tensor) -> Tensor:
        """The vectors `(m, 1, D)` of whole texts."""
        features = self.run(self.network.get_text_features, ids, real)
        vectors: Tensor = getattr(features, "pooler_output", features)
        return vectors.unsqueeze(1)

    def forward(self, words: Tensor, mask: Tensor) -> Tokens:
        """`words (m, L)` piece ids and their mask -> vectors `(m, 1, D)`, and a mask of them."""
        ids, real = self.whole_texts(words, mask)
        with torch.no_grad():
            return Tokens(self.states(ids, real), real[:, :1])


def _pieces(vocabulary: AnyVocabulary) -> Pieces:
    """Refuse a vocabulary that is not that of a text model of the hub."""
    if not isinstance(vocabulary, Pieces) or isinstance(vocabulary, WordPieces):
        raise ConfigError("a text model of the hub reads the pieces of its own tokeniser")
    return vocabulary
