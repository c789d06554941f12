"""Captions to a BERT's wordpieces, and back from a model's folder."""

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

from manymatch.system import files
from manymatch.system.errors import ConfigError, DataError
from manymatch.text.vocabulary import Vocabulary, read_json

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
"""The keys of a BERT's `config.json` that say what the network looks like."""

_NO_WORD = re.compile(r"\[.+\]")
"""Pieces that no text holds: the special ones and those kept for later use, "[unused7]"."""


class WordPieces:
    """A BERT's wordpieces and their ids; stands where a `Vocabulary` does.

    `PAD`, `UNK`, `CLS`, `SEP` and `MASK` are the BERT's own ids. `network` holds the keys
    `NETWORK` of its configuration, so that the network can be built wherever the pieces are;
    `pretrained` is the folder of its weights, None where a trained model brings them along.
    """

    def __init__(
        self, tokenizer: str, network: dict[str, Any], pretrained: Path | None = None
    ) -> None:
        """`tokenizer`: the JSON of a tokeniser of the library `tokenizers`.

        Raises:
            ValueError: it is not, or not one of wordpieces with a BERT's special ones.
        """
        self._json = tokenizer
        self._tokenizer = _tokenizer(tokenizer)
        self.network = network
        self.pretrained = pretrained
        pieces = self._tokenizer.get_vocab()
        if missing := [piece for piece in SPECIAL if piece not in pieces]:
            raise ValueError(f"{missing[0]} is not among them")
        self.PAD, self.UNK, self.CLS, self.SEP, self.MASK = (pieces[piece] for piece in SPECIAL)
        self.words = tuple(sorted(pieces, key=pieces.__getitem__))
        self.ordinary: Sequence[int] = sorted(
            number for piece, number in pieces.items() if not _NO_WORD.fullmatch(piece)
        )
        # Room for [CLS] and [SEP], which the network adds.
        self._longest = network.get("max_position_embeddings", 512) - 2

    def __reduce__(self) -> tuple:
        return WordPieces, (self._json, self.network, self.pretrained)

    @classmethod
    def from_folder(cls, folder: Path) -> WordPieces:
        """Those of the BERT in `folder`: `config.json`, and `tokenizer.json` or `vocab.txt`.

        Raises:
            ConfigError: a file is missing or unusable, or the network is not a BERT.
        """
        config = _read_object(folder / "config.json")
        if config.get("model_type") != "bert":
            raise ConfigError(f"{folder}: not a BERT but '{config.get('model_type')}'")
        network = {key: config[key] for key in NETWORK if key in config}
        whole = folder / "tokenizer.json"
        try:
            text = whole.read_text("utf-8") if whole.is_file() else _from_list(folder)
            return cls(text, network, folder)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{folder}: its wordpieces cannot be used: {error}") from None

    @classmethod
    def from_json(cls, value: dict[str, Any], path: Path) -> WordPieces:
        """From what `read_json` found at `path`, a trained model's file; else `DataError`."""
        try:
            return cls(json.dumps(value["wordpieces"]), dict(value["network"]))
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}: cannot be read as wordpieces ({error})") from None

    def save(self, path: Path) -> None:
        """Write the JSON that `from_json` reads, whole or not at all."""
        pieces = {"wordpieces": json.loads(self._json), "network": self.network}
        files.write_json(path, pieces)

    def encode(self, text: str) -> list[int]:
        """The ids of the text's pieces, as many as the network can read beside [CLS] and [SEP]."""
        found: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return found[: self._longest]

    def __len__(self) -> int:
        return len(self.words)


AnyVocabulary = Vocabulary | WordPieces
"""What captions are numbered by."""


def load_vocabulary(path: Path) -> AnyVocabulary:
    """What the trained model numbers captions by, of which `path` is the file; or `DataError`."""
    value = read_json(path)
    if isinstance(value, dict) and "wordpieces" in value:
        return WordPieces.from_json(value, path)
    return Vocabulary.from_json(value, path, trained=True)


def _tokenizer(text: str) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(f"no tokeniser: {error}") from None
    if not isinstance(tokenizer.model, WordPiece):
        raise ValueError("not a tokeniser of wordpieces")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True  # "[SEP]" in a caption is four characters and a word
    return tokenizer


def _from_list(folder: Path) -> str:
    """The tokeniser of an older folder: its pieces one a line, lower-cased unless it says no."""
    pieces = (folder / "vocab.txt").read_text("utf-8").rstrip("\n").split("\n")
    settings = folder / "tokenizer_config.json"
    lowercase = not settings.is_file() or _read_object(settings).get("do_lower_case", True)
    ids = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=bool(lowercase))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    text: str = tokenizer.to_str()
    return text


def _read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a BERT's file `path`, or `ConfigError`."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected a JSON object")
    return value
