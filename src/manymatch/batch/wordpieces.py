"""Captions to the ids of a BERT's wordpieces; reading and writing the wordpieces."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from manymatch.batch.vocabulary import Vocabulary
from manymatch.util.errors import ConfigError, DataError, repeated
from manymatch.util.files import write_json
from manymatch.util.json_file import read_object
from manymatch.util.regular_file import read_regular

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
NETWORK = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
    "initializer_range",
)
"""The keys of a BERT's `config.json` that define the network."""

_MOST_BYTES = 2**25
"""The largest size of the file of a vocabulary. A quarter of a million wordpieces take 10 MB."""
_SPECIAL_PIECE = re.compile(r"\[.+\]")
"""Pieces that do not occur in texts: special and reserved pieces, such as "[unused7]"."""


class WordPieces:
    """A BERT's wordpieces and their ids, usable in place of a `Vocabulary`.

    Attributes:
        PAD, UNK, CLS, SEP, MASK: the BERT's own ids.
        words: all pieces in the order of their ids.
        continuing: the ids of the pieces that continue a word ("##s").
        network: the keys `NETWORK` of the BERT's configuration, from which the network is built.
        pretrained: the folder of the weights, or None if a trained model contains the weights.
    """

    def __init__(
        self, tokenizer: str, network: dict[str, Any], pretrained: Path | None = None
    ) -> None:
        """Load a tokeniser.

        Args:
            tokenizer: JSON of a tokeniser of the library `tokenizers`.
            network: see the class.
            pretrained: see the class.

        Raises:
            ValueError: `tokenizer` is not a wordpiece tokeniser with a BERT's special pieces.
        """
        self._json = tokenizer
        self._tokenizer = _tokenizer(tokenizer)
        self.network = network
        self.pretrained = pretrained
        pieces = self._tokenizer.get_vocab()
        if missing := [piece for piece in SPECIAL if piece not in pieces]:
            raise ValueError(f"the special piece {missing[0]} is missing")
        self.PAD, self.UNK, self.CLS, self.SEP, self.MASK = (pieces[piece] for piece in SPECIAL)
        self.words = tuple(sorted(pieces, key=pieces.__getitem__))
        self.ordinary: Sequence[int] = sorted(
            number for piece, number in pieces.items() if not _SPECIAL_PIECE.fullmatch(piece)
        )
        prefix = self._tokenizer.model.continuing_subword_prefix
        self.continuing = frozenset(
            number for piece, number in pieces.items() if piece.startswith(prefix)
        )
        # The network adds [CLS] and [SEP].
        self._max_pieces = network.get("max_position_embeddings", 512) - 2

    def __reduce__(self) -> tuple:
        return WordPieces, (self._json, self.network, self.pretrained)

    @classmethod
    def from_folder(cls, folder: Path) -> WordPieces:
        """Read the wordpieces of the BERT in `folder`.

        The folder has `config.json`, and `tokenizer.json` or `vocab.txt`.

        Raises:
            ConfigError: the wordpieces are unusable, or the network is not a BERT.
            DataError: a JSON file is missing or damaged.
        """
        config = read_object(folder / "config.json")
        if config.get("model_type") != "bert":
            raise ConfigError(
                f"{folder}: a network of type '{config.get('model_type')}', not a BERT"
            )
        network = {key: config[key] for key in NETWORK if key in config}
        tokenizer = folder / "tokenizer.json"
        try:
            text = tokenizer.read_text("utf-8") if tokenizer.is_file() else _tokenizer_text(folder)
            return cls(text, network, folder)
        except (OSError, TypeError, ValueError) as error:
            raise ConfigError(f"{folder}: the wordpieces cannot be used: {error}") from None

    @classmethod
    def from_json(cls, value: dict[str, Any], path: Path) -> WordPieces:
        """Build the wordpieces from the content `value` of a trained model's file `path`.

        Raises:
            DataError: the content is damaged.
        """
        try:
            return cls(json.dumps(value["wordpieces"]), dict(value["network"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}: cannot be read as wordpieces ({error})") from None

    def save(self, path: Path) -> None:
        """Write the JSON file that `from_json` reads, completely or not at all."""
        pieces = {"wordpieces": json.loads(self._json), "network": self.network}
        write_json(path, pieces)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the text's pieces, cut to the network's length less [CLS] and [SEP]."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids[: self._max_pieces]

    def unknown(self, text: str) -> list[str]:
        """The words of `text` without wordpieces, each once; the whole text if it has no words."""
        words = self._words(text)
        unknown = dict.fromkeys(word for number, word in words if number == self.UNK)
        return list(unknown) if words else [text.strip()]

    def knows(self, text: str) -> bool:
        """Whether a word of `text` has wordpieces."""
        return any(number != self.UNK for number, _ in self._words(text))

    def _words(self, text: str) -> list[tuple[int, str]]:
        """The ids and places in `text` of the pieces with a letter or digit."""
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        pieces = zip(encoded.ids, encoded.offsets, strict=True)
        words = [(number, text[slice(*place)]) for number, place in pieces]
        return [(number, word) for number, word in words if any(map(str.isalnum, word))]

    def __len__(self) -> int:
        return len(self.words)


AnyVocabulary = Vocabulary | WordPieces
"""What maps captions to ids."""


def load_vocabulary(path: Path) -> AnyVocabulary:
    """Load the vocabulary or wordpieces in the file `path` of a trained model.

    Raises:
        DataError: the file is missing or damaged.
    """
    try:
        value = read_object(path, _MOST_BYTES)
        if "wordpieces" in value:
            return WordPieces.from_json(value, path)
        return Vocabulary.from_json(value, path, trained=True)
    except DataError as error:
        raise DataError(f"{error}. Train the model again") from None


def _tokenizer(text: str) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(f"not a tokeniser: {error}") from None
    if not isinstance(tokenizer.model, WordPiece):
        raise ValueError("not a wordpiece tokeniser")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True  # "[SEP]" in a caption is not the special piece
    return tokenizer


def _tokenizer_text(folder: Path) -> str:
    """Return the tokeniser of a folder with `vocab.txt`; it is lower-casing by default."""
    lines = read_regular(folder / "vocab.txt").decode().replace("\r\n", "\n")
    pieces = lines.rstrip("\n").split("\n")
    settings = folder / "tokenizer_config.json"
    lowercase = not settings.is_file() or read_object(settings).get("do_lower_case", True)
    ids = {piece: number for number, piece in enumerate(pieces)}
    if len(ids) < len(pieces):
        twice = repeated(pieces)
        raise DataError(f"{folder / 'vocab.txt'}: the piece {twice!a:.60} stands twice")
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=bool(lowercase))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    text: str = tokenizer.to_str()
    return text
